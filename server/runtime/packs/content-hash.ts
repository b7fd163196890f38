// The identity of a folder's content: one hash over the names and bytes of its files, however they came there.
import { createHash } from 'node:crypto'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'

/**
 * SHA-256 (hexadecimal) over the files below a folder, sorted by relative path: path, length and bytes of each; of a link,
 * which is not followed, where it points. Names that begin with a dot are left out: they come and go beside the content.
 */
export async function contentHash(folder: string): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const named = entries
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return { path, name: relative(folder, path).split(sep).join('/'), link: !entry.isFile() }
    })
    .filter(({ name }) => !name.split('/').some((part) => part.startsWith('.')))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
  const hash = createHash('sha256')
  for (const { path, name, link } of named) {
    const bytes = link ? Buffer.from(await readlink(path)) : await readFile(path)
    hash.update(`${link ? 'link' : 'file'}\0${name}\0${bytes.length}\0`).update(bytes)
  }
  return hash.digest('hex')
}
