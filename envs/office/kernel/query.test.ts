// Lists and searches: pages, order, filters and tokens (SPEC c.1).
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { callAll } from '../transcripts.testkit.ts'
import { tokensOf } from './query.ts'

const person = (n: number, more: JsonObject = {}): JsonObject => ({
  person_id: `PE-${n}`,
  name: `Person ${n}`,
  email: `p${n}@acme.example`,
  kind: 'internal',
  status: 'active',
  ...more,
})
const people = (...records: JsonObject[]) => ({ initial_state: { contacts: { person: records } } })
const hundred = people(...Array.from({ length: 100 }, (_, i) => person(i + 100)))

const ids = (result: JsonObject, key = 'person_id') =>
  (result.items as JsonObject[]).map((item) => item[key])
const list = (given: Parameters<typeof callAll>[0], args: JsonObject = {}) =>
  callAll(given, ['contacts_list', args]).result
const search = (given: Parameters<typeof callAll>[0], query: string, more: JsonObject = {}) =>
  ids(callAll(given, ['contacts_search', { query, ...more }]).result)

describe('a page', () => {
  test.each([
    ['20 by default', {}, 20, 20],
    ['as many as asked for', { limit: 7 }, 7, 7],
    ['50 at most', { limit: 1000 }, 50, 50],
    ['from an offset', { offset: 40, limit: 50 }, 50, 90],
    ['the rest, and then no more', { offset: 95 }, 5, null],
    ['the last one exactly', { offset: 80 }, 20, null],
    ['nothing past the end', { offset: 1000 }, 0, null],
  ])('holds %s', (_what, args, items, next) => {
    const result = list(hundred, args)
    expect(ids(result)).toHaveLength(items)
    expect(result).toMatchObject({ total: 100, next_offset: next })
  })
  test('shows the summary fields that a record has, and notes them as read in summary', () => {
    const { result, audit } = callAll(people(person(1, { title: 'Buyer' })), ['contacts_list', {}])
    expect(result.items).toEqual([
      { person_id: 'PE-1', name: 'Person 1', title: 'Buyer', kind: 'internal', status: 'active' },
    ])
    expect(audit.reads).toEqual([{ entity: 'contacts.person', id: 'PE-1', depth: 'summary' }])
  })
  test('of an entity without summary fields shows all, and notes it as read in full', () => {
    const channel = { channel_id: 'CH-1', name: 'ops', members: [], private: false }
    const { result, audit } = callAll({ initial_state: { chat: { channel: [channel] } } }, [
      'chat_list_channels',
      {},
    ])
    expect(result.items).toEqual([channel])
    expect(audit.reads).toEqual([{ entity: 'chat.channel', id: 'CH-1', depth: 'full' }])
  })
  test('notes as read only what is on it', () => {
    const { audit } = callAll(hundred, ['contacts_list', { limit: 2, offset: 3 }])
    expect(audit.reads.map(({ id }) => id)).toEqual(['PE-103', 'PE-104'])
  })
})

describe('order', () => {
  const alert = (n: number, started_at: string): JsonObject => ({
    alert_id: `AL-${n}`,
    service: 'api',
    severity: 'info',
    message: 'm',
    status: 'firing',
    started_at,
  })
  test('goes by the declared field as instants, newest first where declared, ties by id', () => {
    const alerts = [
      alert(1, '2027-03-10T09:00:00+00:00'),
      alert(2, '2027-03-10T10:30:00+02:00'),
      alert(4, '2027-03-11T00:00:00Z'),
      alert(3, '2027-03-11T01:00:00+01:00'),
    ]
    const given = { initial_state: { monitoring: { alert: alerts } } }
    const { result } = callAll(given, ['monitoring_list_alerts', {}])
    expect(ids(result, 'alert_id')).toEqual(['AL-3', 'AL-4', 'AL-1', 'AL-2'])
  })
})

describe('filters', () => {
  const given = people(
    person(1, { department: 'Sales' }),
    person(2, { department: 'sales ' }),
    person(3, { department: 'Sales East' }),
    person(4),
  )
  test('equality ignores case and surrounding space, and absent fields do not match', () => {
    expect(ids(list(given, { department: ' SALES' }))).toEqual(['PE-1', 'PE-2'])
  })
  test('several filters must all hold', () => {
    expect(ids(list(given, { department: 'sales', status: 'left' }))).toEqual([])
  })

  const mail = (n: number, more: JsonObject): JsonObject => ({
    message_id: `ML-${n}`,
    folder: 'inbox',
    from: 'ann@acme.example',
    to: [],
    subject: 's',
    body: 'b',
    sent_at: `2027-03-0${n}T12:00:00+01:00`,
    read: false,
    labels: [],
    ...more,
  })
  const mailbox = {
    initial_state: {
      mail: {
        message: [
          mail(1, {}),
          mail(2, { labels: ['VIP'], read: true }),
          mail(3, { from: 'bob@other.example' }),
          mail(4, { folder: 'sent' }),
        ],
      },
    },
  }
  test.each([
    ['the default folder', {}, ['ML-3', 'ML-2', 'ML-1']],
    ['another folder', { folder: 'sent' }, ['ML-4']],
    ['part of an address', { from: 'ACME' }, ['ML-2', 'ML-1']],
    ['a label of several', { label: 'vip' }, ['ML-2']],
    ['a boolean', { read: false }, ['ML-3', 'ML-1']],
    [
      'an instant, inclusive, whatever its offset',
      { since: '2027-03-02T11:00:00Z' },
      ['ML-3', 'ML-2'],
    ],
  ])('mail by %s', (_what, args, expected) => {
    expect(ids(callAll(mailbox, ['mail_list_messages', args]).result, 'message_id')).toEqual(
      expected,
    )
  })

  test('dates compare inclusively', () => {
    const transaction = (n: number, date: string) => ({
      transaction_id: `TX-${n}`,
      date,
      amount: 1,
      currency: 'EUR',
      direction: 'in',
      counterparty: 'c',
      status: 'posted',
    })
    const finance = {
      transaction: [
        transaction(1, '2027-03-01'),
        transaction(2, '2027-03-02'),
        transaction(3, '2027-03-03'),
      ],
    }
    const { result } = callAll({ initial_state: { finance } }, [
      'finance_list_transactions',
      { from: '2027-03-02', to: '2027-03-03' },
    ])
    expect(ids(result, 'transaction_id')).toEqual(['TX-3', 'TX-2'])
  })
  test('an amount may be bounded from above', () => {
    const option = (n: number, price: number) => ({
      option_id: `TO-${n}`,
      kind: 'train',
      destination: 'Lyon',
      depart: `2027-03-11T0${n}:00:00Z`,
      price,
      currency: 'EUR',
      refundable: true,
      seats: 1,
    })
    const travel = { option: [option(1, 80), option(2, 80.01), option(3, 79)] }
    const { result } = callAll({ initial_state: { travel } }, [
      'travel_search',
      { destination: 'lyon', max_price: 80 },
    ])
    expect(ids(result, 'option_id')).toEqual(['TO-1', 'TO-3'])
  })
})

describe('search', () => {
  const given = people(
    person(1, { name: 'Marta Iversen', title: 'Printing house', kind: 'external' }),
    person(2, { name: 'Marta Ivens', title: 'Trainee' }),
    person(3, { name: 'Ira Salonen', department: 'Printing' }),
    person(4, { name: '王小明', title: '市场计划经理' }),
  )
  test('finds records that hold at least half of the words, most words first, then by id', () => {
    expect(search(given, 'marta iversen')).toEqual(['PE-1', 'PE-2'])
    expect(search(given, 'marta iversen printing house')).toEqual(['PE-1'])
    expect(search(given, 'printing trainee')).toEqual(['PE-1', 'PE-2', 'PE-3'])
  })
  test('words are found within words, whatever their case', () => {
    expect(search(given, 'SALO')).toEqual(['PE-3'])
  })
  test('an address is one word: it does not match every address of its domain', () => {
    expect(search(given, 'p2@acme.example')).toEqual(['PE-2'])
  })
  test('equality filters narrow a search', () => {
    expect(search(given, 'marta', { kind: 'internal' })).toEqual(['PE-2'])
  })
  test('text without spaces is found by pairs of characters', () => {
    expect(search(given, '市场计划')).toEqual(['PE-4'])
    expect(search(given, '计划书')).toEqual(['PE-4'])
    expect(search(given, '财务报告')).toEqual([])
  })
  test.each(['', '   ', '!?', '。'])('a query without a word (%j) is refused', (query) => {
    expect(callAll(given, ['contacts_search', { query }]).error).toBe('INVALID_ARGUMENT')
  })
  test('lists of words are searched member by member', () => {
    const note = {
      note_id: 'NT-1',
      title: 'T',
      created_at: '2027-03-01T00:00:00Z',
      participants: ['Lou Kemp'],
      body: 'b',
      tags: [],
      shared_with: [],
    }
    const { result } = callAll({ initial_state: { notes: { note: [note] } } }, [
      'notes_search',
      { query: 'kemp' },
    ])
    expect(ids(result, 'note_id')).toEqual(['NT-1'])
  })
})

test.each([
  ['Invoice IN-302, overdue!', ['invoice', 'in-302', 'overdue']],
  ['a.b+c@d.example (v1.2)', ['a.b+c@d.example', 'v1.2']],
  ['the plan.', ['the', 'plan']],
  ['plan PLAN plan', ['plan']],
  ['2027年计划', ['年计', '计划', '2027']],
  ['ＡＢＣ', ['abc']],
  ['Müller straße', ['müller', 'straße']],
])('the words of %j are %j', (query, tokens) => {
  expect(tokensOf(query)).toEqual(tokens)
})
