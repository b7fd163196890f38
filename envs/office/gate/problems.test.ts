// The gate: the shipped specs pass, and a spec that is wrong in one place is told where, by which rule.
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../protocol/json.ts'
import { shippedGraders } from '../shipped-graders.testkit.ts'
import type { TaskSpec } from '../spec.ts'
import { specs } from '../transcripts.testkit.ts'
import { problemsOf } from './problems.ts'

const spec = (id: string): TaskSpec => structuredClone(specs.find((one) => one.id.startsWith(id))!)
const problems = (given: unknown) => problemsOf(given as JsonObject, shippedGraders.names)

test.each(specs)('$id has no problem', (shipped) => {
  expect(problems(shipped)).toEqual([])
})

/** A shipped spec with one change; the change may go against the types, as a file may. */
// biome-ignore lint/suspicious/noExplicitAny: the changes break the form on purpose
type Break = (spec: any) => void

const BROKEN: { [rule: string]: [what: string, id: string, change: Break, path: string][] } = {
  V01: [
    ['a missing member', 'dev-01', (s) => delete s.clock, 'clock'],
    ['an unknown member', 'dev-01', (s) => (s.cloks = {}), 'cloks'],
    ['a wrong type', 'dev-01', (s) => (s.title = 7), 'title'],
    ['an unknown service', 'dev-01', (s) => s.services.push('fax'), 'services[4]'],
    [
      'an unknown tool in a check',
      'dev-01',
      (s) => (s.grading.safety[1].violated_if.tool = 'billing_void'),
      'grading.safety[1].violated_if.tool',
    ],
    [
      'an unknown entity in a check',
      'dev-01',
      (s) => (s.grading.completion[0].entity = 'mail.mesage'),
      'grading.completion[0].entity',
    ],
    [
      'an unknown kind of check',
      'dev-01',
      (s) => (s.grading.completion[0].kind = 'covers'),
      'grading.completion[0]',
    ],
    [
      'a member that a check’s kind does not have',
      'dev-01',
      (s) => (s.grading.completion[2].items = []),
      'grading.completion[2].items',
    ],
    [
      'an unknown tool on the reference path',
      'dev-01',
      (s) => (s.reference_path[0].call = 'billing_list'),
      'reference_path[0].call',
    ],
    [
      'a check without weight',
      'dev-01',
      (s) => delete s.grading.completion[1].weight,
      'grading.completion[1].weight',
    ],
    [
      'a check without kind',
      'dev-01',
      (s) => delete s.grading.completion[1].kind,
      'grading.completion[1]',
    ],
    ['an unknown member of the user', 'dev-05', (s) => (s.user.mood = 'bad'), 'user.mood'],
    [
      'an actor without an e-mail address',
      'dev-01',
      (s) => (s.actor.email = 'Hedda'),
      'actor.email',
    ],
  ],
  V02: [
    [
      'a service without records',
      'dev-01',
      (s) => delete s.initial_state.mail,
      'initial_state.mail',
    ],
    [
      'records of a service the task lacks',
      'dev-01',
      (s) => (s.initial_state.kb = {}),
      'initial_state.kb',
    ],
  ],
  V03: [
    [
      'an unknown entity',
      'dev-01',
      (s) => (s.initial_state.mail.mails = []),
      'initial_state.mail.mails',
    ],
    [
      'an unknown field',
      'dev-01',
      (s) => (s.initial_state.crm.customer[0].tear = 'x'),
      'initial_state.crm.customer[0].tear',
    ],
    [
      'a missing field',
      'dev-01',
      (s) => delete s.initial_state.crm.customer[0].name,
      'initial_state.crm.customer[0].name',
    ],
    [
      'a wrong type',
      'dev-01',
      (s) => (s.initial_state.billing.invoice[0].amount = '4200'),
      'initial_state.billing.invoice[0].amount',
    ],
    [
      'a value outside the enum',
      'dev-01',
      (s) => (s.initial_state.crm.customer[0].tier = 'gold'),
      'initial_state.crm.customer[0].tier',
    ],
    [
      'a day that does not exist',
      'dev-01',
      (s) => (s.initial_state.billing.invoice[0].due_date = '2027-02-29'),
      'initial_state.billing.invoice[0].due_date',
    ],
    [
      'a time without offset',
      'dev-01',
      (s) => (s.initial_state.mail.message[0].sent_at = '2027-03-31T09:00:00'),
      'initial_state.mail.message[0].sent_at',
    ],
    [
      'an id that occurs twice',
      'dev-01',
      (s) => (s.initial_state.crm.customer[1].customer_id = 'CU-30'),
      'initial_state.crm.customer[1].customer_id',
    ],
    [
      'a reference to nothing',
      'dev-01',
      (s) => (s.initial_state.billing.invoice[0].customer_id = 'CU-99'),
      'initial_state.billing.invoice[0].customer_id',
    ],
    [
      'an id in the form of created ones',
      'dev-06',
      (s) => (s.initial_state.todo.item[0].todo_id = 'TD-N1'),
      'initial_state.todo.item[0].todo_id',
    ],
  ],
  V04: [
    [
      'a reference path with a tool of another service',
      'dev-01',
      (s) => (s.reference_path[0].call = 'kb_list'),
      'reference_path[0].call',
    ],
    [
      'a reference path with a tool that is not offered',
      'dev-04',
      (s) => (s.tools = ['calendar_create_event']),
      'reference_path[0].call',
    ],
    [
      'an offered tool of another service',
      'dev-04',
      (s) => (s.tools = ['calendar_list_events', 'calendar_create_event', 'kb_list']),
      'tools[2]',
    ],
  ],
  V05: [
    [
      'weights that do not add up to 1',
      'dev-01',
      (s) => (s.grading.completion[0].weight = 0.5),
      'grading.completion',
    ],
    [
      'two checks of one id',
      'dev-01',
      (s) => (s.grading.completion[1].id = 'mailed'),
      'grading.completion[1].id',
    ],
    [
      'two rules of one id',
      'dev-01',
      (s) => (s.grading.safety[1].id = 'no_customer_mail'),
      'grading.safety[1].id',
    ],
    ['two faults of one id', 'dev-06', (s) => s.faults.push({ ...s.faults[0] }), 'faults[2].id'],
    [
      'weights of parts that are all 0',
      'dev-06',
      (s) => (s.grading.weights = { completion: 0, robustness: 0 }),
      'grading.weights',
    ],
  ],
  V06: [
    [
      'a forbidden tool on the reference path',
      'dev-01',
      (s) => (s.grading.safety[1].violated_if.tool = ['contacts_get']),
      'grading.safety[1]',
    ],
  ],
  V07: [
    [
      'a hidden string in the request',
      'dev-01',
      (s) => (s.request += ' Start with SOLSTICE  yarn.'),
      'hidden[4]',
    ],
    [
      'a hidden string in the name of the actor',
      'dev-04',
      (s) => (s.actor.name = 'celia.orth@lumen-hr.example'),
      'hidden[3]',
    ],
    [
      'a graded id in the request',
      'dev-01',
      (s) => (s.request += ' It is in-304.'),
      'grading.completion',
    ],
  ],
  V08: [
    [
      'an unknown field in a check',
      'dev-01',
      (s) => (s.grading.completion[1].items[0].costumer_id = 'x'),
      'grading.completion[1].items[0].costumer_id',
    ],
    [
      'an unknown operator',
      'dev-01',
      (s) => (s.grading.completion[1].items[0].summary = { contain: 'x' }),
      'grading.completion[1].items[0].summary.contain',
    ],
    [
      'an operator from the prototype',
      'dev-01',
      (s) => (s.grading.completion[1].items[0].summary = { toString: 'x' }),
      'grading.completion[1].items[0].summary.toString',
    ],
    [
      'an operand of the wrong kind',
      'dev-01',
      (s) => (s.grading.completion[1].items[0].summary = { contains_any: 'x' }),
      'grading.completion[1].items[0].summary.contains_any',
    ],
    [
      'a pattern that does not compile',
      'dev-01',
      (s) => (s.grading.safety[0].violated_if.where.to.has.matches = '('),
      'grading.safety[0].violated_if.where.to.has.matches',
    ],
    [
      'a text pattern that does not compile',
      'dev-02',
      (s) => (s.grading.safety[0].violated_if.any_of[4].re = '[a'),
      'grading.safety[0].violated_if.any_of[4].re',
    ],
    [
      'an enum value that no record can have',
      'dev-01',
      (s) => (s.grading.completion[0].scope.folder = 'outbox'),
      'grading.completion[0].scope.folder',
    ],
    [
      'an unknown parameter of a call',
      'dev-05',
      (s) => (s.grading.safety[0].violated_if.args = { file: 'FL-2' }),
      'grading.safety[0].violated_if.args.file',
    ],
    [
      'an id that is not seeded',
      'dev-01',
      (s) => (s.grading.completion[2].ids[0] = 'IN-999'),
      'grading.completion[2].ids[0]',
    ],
    [
      'an entity out of reach',
      'dev-01',
      (s) =>
        (s.grading.completion[0] = {
          ...s.grading.completion[0],
          entity: 'kb.article',
          scope: {},
          items: [{}],
        }),
      'grading.completion[0].entity',
    ],
    [
      'a requirement that is no check',
      'dev-06',
      (s) => (s.grading.completion[2].requires = ['asigned']),
      'grading.completion[2].requires[0]',
    ],
    [
      'requirements in a circle',
      'dev-06',
      (s) => (s.grading.completion[0].requires = ['told']),
      'grading.completion[0].requires',
    ],
    [
      'a cover of nothing',
      'dev-01',
      (s) => (s.grading.completion[0].items = []),
      'grading.completion[0].items',
    ],
    [
      'a custom grader',
      'dev-01',
      (s) => (s.grading.completion[4] = { id: 'x', weight: 0.1, kind: 'custom', grader: 'g' }),
      'grading.completion[4].grader',
    ],
    [
      'an unknown parameter of a fault',
      'dev-06',
      (s) => (s.faults[0].args = { asset: 'AS-11' }),
      'faults[0].args.asset',
    ],
    [
      'verification of no fault',
      'dev-06',
      (s) => (s.grading.verify_with = { timeout: ['todo_list'] }),
      'grading.verify_with',
    ],
    [
      'a user rule after no rule',
      'dev-05',
      (s) => (s.user.done.after[0] = 'which'),
      'user.done.after[0]',
    ],
    [
      'a pattern that can take for ever',
      'dev-05',
      (s) => (s.user.rules[0].if_any[0] = '^(([a-z ]+)+)+$'),
      'user.rules[0].if_any[0]',
    ],
    [
      'a user pattern that does not compile',
      'dev-05',
      (s) => (s.user.rules[0].if_any[0] = '*'),
      'user.rules[0].if_any[0]',
    ],
    [
      'a probe of no rule',
      'dev-01',
      (s) => (s.forbidden_probes[0].rule = 'x'),
      'forbidden_probes[0].rule',
    ],
    [
      'an expectation of no check',
      'dev-01',
      (s) => (s.transcripts.wrong.expect.checks.maild = 0),
      'transcripts.wrong.expect.checks',
    ],
  ],
  V09: [
    [
      'a clock at a time that does not exist',
      'dev-01',
      (s) => (s.clock.now = '2027-02-30T09:00:00+01:00'),
      'clock.now',
    ],
    ['a clock that runs backwards', 'dev-01', (s) => (s.clock.tick_s = -1), 'clock.tick_s'],
  ],
}

describe.each(Object.entries(BROKEN))('%s', (rule, cases) => {
  test.each(cases)('finds %s', (_what, id, change, path) => {
    const broken = spec(id)
    change(broken)
    const found = problems(broken)
    expect(found.map((one) => `${one.rule} ${one.path}`)).toContain(`${rule} ${path}`)
    for (const one of found) {
      expect(one.expected).not.toBe('')
      expect(one.message).toContain(one.path)
    }
  })
})

test('one wrong name gives one problem, which names what there is', () => {
  const broken = spec('dev-01') as { grading: { completion: Record<string, unknown>[] } } & TaskSpec
  broken.grading.completion[0]!.entity = 'mail.mesage'
  const found = problems(broken)
  expect(found).toHaveLength(1)
  expect(found[0]!.message).toBe(
    'V01 grading.completion[0].entity: expected one of mail.message, found "mail.mesage"',
  )
})

test('a clock without offset is found by the schema already', () => {
  const broken = spec('dev-01')
  broken.clock.now = '2027-04-01T09:00:00'
  expect(problems(broken)[0]).toMatchObject({ rule: 'V01', path: 'clock.now' })
})

test.each([{}, { grading: null }, JSON.parse('{"__proto__":{}}')])(
  '%j is refused by form and throws nothing',
  (given) => {
    expect(problems(given).every(({ rule }) => rule === 'V01')).toBe(true)
    expect(problems(given)).not.toEqual([])
  },
)

test('a reference to a service that the task lacks is not checked', () => {
  const loose = spec('dev-01')
  const [invoice] = loose.initial_state.billing!.invoice!
  invoice!.order_id = 'OR-1'
  expect(problems(loose)).toEqual([])
})

test('a rule that forbids a tool under a condition may leave it on the reference path', () => {
  const conditional = spec('dev-01')
  conditional.grading.safety[1]!.violated_if = {
    kind: 'call',
    tool: 'contacts_get',
    args: { person_id: 'PE-9' },
  }
  expect(problems(conditional)).toEqual([])
})
