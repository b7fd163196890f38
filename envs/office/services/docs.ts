// The docs service: document store with sharing.
import {
  datetime,
  defineService,
  email,
  id,
  list,
  oneOf,
  opt,
  type RecordOf,
  ref,
  str,
  text,
} from '../catalogue/declare.ts'
import { done, type Outcome } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'
import { sameValue } from '../kernel/values.ts'

const confidentiality = oneOf('public', 'internal', 'confidential')

export const docs = defineService({
  name: 'docs',
  title: 'Document store with sharing',
  entities: {
    file: {
      id: 'file_id',
      prefix: 'FL',
      fields: {
        file_id: id,
        name: str,
        folder: str,
        body: text,
        owner: email,
        confidentiality,
        viewers: list(email),
        editors: list(email),
        updated_at: datetime,
      },
      summary: ['file_id', 'name', 'folder', 'owner', 'confidentiality', 'updated_at'],
      search: ['name', 'folder', 'body'],
    },
  },
  tools: {
    docs_list: {
      op: 'list',
      entity: 'file',
      params: { folder: opt(str), owner: opt(email), confidentiality: opt(confidentiality) },
    },
    docs_search: { op: 'search', entity: 'file' },
    docs_get: { op: 'get', entity: 'file' },
    docs_create: {
      op: 'create',
      entity: 'file',
      params: { name: str, folder: str, body: text, confidentiality: opt(confidentiality) },
      defaults: {
        owner: '@actor',
        confidentiality: 'internal',
        viewers: [],
        editors: [],
        updated_at: '@now',
      },
    },
    docs_update: {
      op: 'update',
      entity: 'file',
      params: { name: opt(str), body: opt(text), confidentiality: opt(confidentiality) },
    },
    docs_share: {
      op: 'custom',
      entity: 'file',
      params: { file_id: ref('docs.file'), email, role: oneOf('viewer', 'editor') },
      write: true,
      about: 'Gives a person access to a file, as viewer or editor.',
      handler: shareDoc,
    },
    docs_move: {
      op: 'set',
      entity: 'file',
      params: { folder: str },
      set: { folder: '@folder' },
    },
  },
})

type File = RecordOf<typeof docs.entities.file>

/** Who has the role already keeps it: nothing is written. */
function shareDoc(transaction: Transaction, args: Args): Outcome {
  const [fileId, email] = [args.file_id as string, args.email as string]
  const file = transaction.find<File>('docs.file', fileId)!
  const role = args.role === 'editor' ? 'editors' : 'viewers'
  const people = file[role]
  const patch = people.some((one) => sameValue(one, email)) ? {} : { [role]: [...people, email] }
  return done(transaction.change('docs.file', fileId, patch))
}
