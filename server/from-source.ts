// Whether this process runs the TypeScript sources (tsx, tests) or the build: file names in URLs end in .ts or .js.

export const fromSource = import.meta.url.endsWith('.ts')
