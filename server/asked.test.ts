// Whoever is asked beside the policy, over HTTP: judge, user, custom graders and reward models, well, failing, hanging and lying.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from '../bench/simulator/server.ts'
import type { BatchProgress, GroupCost } from '../protocol/batch.ts'
import type { DeliveredGroup } from '../protocol/group.ts'
import type { JsonObject } from '../protocol/json.ts'
import { arithmeticRequest, type House, officeTasks, openHouse } from './testkit/house.testkit.ts'

/** An environment of a user's own that asks what its task says. */
const ASKER = `
export default {
  contract: { name: 'asker', version: 1, fields: { score: { type: 'number', min: 0, max: 1, required: true } }, scalar: 'score', components: [] },
  problems: () => [],
  describe: (task) => ({ title: task.id, limits: {} }),
  reset: (task) => ({ spec: task.spec, said: [] }),
  open: (state) => [{ role: 'user', content: state.spec.request }],
  tools: () => [],
  step: (state) => ({ state, observation: { content: 'no such tool', is_error: true }, audit: {} }),
  hear: (state) => state,
  reply(state, message, turn, said) {
    if (!state.spec.user || state.said.length > 0) return { state, end: 'final' }
    if (said === undefined)
      return { state, ask: { kind: 'user', messages: [{ role: 'system', content: state.spec.user }, { role: 'user', content: message }] } }
    return { state: { ...state, said: [said] }, say: said }
  },
  grade(state, answers) {
    const open = (state.spec.asks ?? []).filter(({ id }) => !(id in answers))
    if (open.length > 0) return { status: 'asks', asks: open }
    const failed = Object.values(answers).find(({ status }) => status !== 'scored')
    if (failed) return { status: 'unavailable', reason: failed.reason, evidence: { answers } }
    const [answer] = Object.values(answers)
    return { status: 'scored', rewards: { score: answer ? answer.rewards.score : 1 }, evidence: { answers, said: state.said } }
  },
  anchor: (state) => 'said ' + state.said.length,
}
`
const GRADERS: Record<string, string> = {
  half: "export const version = 3\nexport default ({ n }, { by }) => ({ status: 'scored', score: n / by, evidence: [1, 'x/Y-1'] })",
  hang: 'export const version = 1\nexport default () => { for (;;) {} }',
  crash: 'export const version = 1\nexport default () => process.exit(3)',
  memory:
    'export const version = 1\nexport default () => { const kept = []; for (;;) kept.push(new Array(5e5).fill(kept.length)) }',
  thrower:
    "export const version = 1\nexport default () => { process.chdir('/tmp'); return { status: 'scored', score: 1 } }",
  wrongkey: "export const version = 1\nexport default () => ({ status: 'scored', reward: 1 })",
  extra:
    "export const version = 1\nexport default () => ({ status: 'scored', score: 1, bonus: 2 })",
  nan: "export const version = 1\nexport default () => ({ status: 'scored', score: 0 / 0 })",
  over: "export const version = 1\nexport default () => ({ status: 'scored', score: 1.5 })",
  unsure:
    "export const version = 1\nexport default () => ({ status: 'unknown', reason: 'no evidence' })",
  dice: "export const version = 1\nexport default () => ({ status: 'scored', score: Math.random() })",
}
const VERDICTS = {
  half: '{"score": 0.5, "reason": "half of it"}',
  prose: 'It deserves a 1.',
  fenced: '```json\n{"score": 1, "reason": "x"}\n```',
  over: '{"score": 1.5, "reason": "x"}',
  text: '{"score": "1", "reason": "x"}',
  extra: '{"score": 1, "reason": "x", "confidence": 1}',
  twice: '{"score": 0, "score": 1, "reason": "x"}',
  // Of good form, for those whose reply is damaged on its way.
  down: '{"score": 1, "reason": "x"}',
  hangs: '{"score": 1, "reason": "x"}',
}

let house: House
let others: Simulator
let models: Server
let count = 0
const asked: string[] = []
/** Of requests to the reward model, in order: path, body, and when each came. */
const received: { path: string; body: Promise<JsonObject>; at: number }[] = []

const script = (match: string, raw: string) => ({
  match,
  transcripts: { correct: { steps: [{ raw }, { raw }] } },
})

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'paddock-asked-'))
  writeFileSync(join(folder, 'asker.mjs'), ASKER)
  const pack = join(folder, 'pack')
  mkdirSync(join(pack, 'tasks'), { recursive: true })
  writeFileSync(join(pack, 'tasks', 'one.json'), JSON.stringify({ id: 'one', request: 'x' }))
  const graders = Object.keys(GRADERS).map((name) => `  ${name}: ${name}.mjs`)
  const manifest = ['name: mine', 'environment: asker', 'tasks: tasks', 'graders:', ...graders]
  writeFileSync(join(pack, 'pack.yaml'), `${manifest.join('\n')}\n`)
  for (const [name, source] of Object.entries(GRADERS))
    writeFileSync(join(pack, `${name}.mjs`), source)

  const verdicts = Object.entries(VERDICTS).map(([name, raw]) => script(`rubric-${name}.`, raw))
  others = await startSimulator({
    model: 'other-8b',
    scripts: [
      ...verdicts,
      script('You are Ada.', 'Yes, the small one.'),
      script('You are slow.', 'Well.'),
      script('You are down.', 'Well.'),
      script('You play ', '###DONE###'),
    ] as never,
    faults: [
      { kind: '500', rate: 1, match: 'rubric-down.' },
      { kind: 'hang', rate: 1, match: 'rubric-hangs.' },
      { kind: '503', rate: 1, match: 'You are down.' },
      { kind: 'hang', rate: 1, match: 'You are slow.' },
    ],
  })
  models = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    received.push({ path, body: json(request) as Promise<JsonObject>, at: performance.now() })
    const again = asked.filter((one) => one === path).length > 1
    const send = (status: number, body: string) => response.writeHead(status).end(body)
    if (path === '/good') send(200, '{"score": 0.25}')
    else if (path === '/flaky') send(again ? 200 : 503, '{"score": 0.75}')
    else if (path === '/busy' && !again)
      response.writeHead(429, { 'retry-after': '1' }).end('a moment')
    else if (path === '/busy') send(200, '{"score": 0.5}')
    else if (path === '/closed') response.writeHead(503, { 'retry-after': '3600' }).end('tomorrow')
    else if (path === '/extra') send(200, '{"score": 0.25, "bonus": 1}')
    else if (path === '/alias') send(200, '{"reward": 0.25}')
    else if (path === '/nan') send(200, '{"score": NaN}')
    else if (path === '/huge') send(200, '{"score": 1e400}')
    else if (path === '/text') send(200, '{"score": "0.25"}')
    else if (path === '/twice') send(200, '{"score": 0, "score": 1}')
    else if (path === '/badjson') send(200, '{"score": 0.2')
    else if (path === '/down') send(500, 'no')
    else if (path === '/redirect') response.writeHead(302, { location: '/good' }).end()
    // Anything else is never answered.
  })
  models.listen(0, '127.0.0.1')
  await once(models, 'listening')
  house = await openHouse({
    office: true,
    tokens: false,
    backends: { others: { dialect: 'vllm', url: others.url, model: 'other-8b' } },
    settings: {
      environments: { asker: join(folder, 'asker.mjs') },
      packs: [pack],
      judge: { backend: 'others', timeout_s: 1, attempts: 2 },
      user: { backend: 'others', timeout_s: 1, attempts: 2, sampling: { temperature: 0.5 } },
      reward: { allow: ['localhost', '127.0.0.1'] },
    },
  })
}, 60_000)
afterAll(async () => {
  await house.close()
  await others.close()
  models.closeAllConnections()
  models.close()
})

const modelUrl = (path: string) =>
  `http://127.0.0.1:${(models.address() as AddressInfo).port}${path}`

/** One episode of a task; what its group says. */
async function playOne(
  spec: JsonObject,
  some: JsonObject = {},
  environment = 'asker',
): Promise<{
  outcome: string
  reward: number | null
  reason: string | null
  grade: { evidence: { answers: Record<string, { by: JsonObject; evidence: unknown }> } }
  cost: GroupCost
  group: DeliveredGroup
  progress: BatchProgress
}> {
  const { groups, progress } = await house.run({
    id: `asked-${count++}`,
    tasks: [{ spec: { request: arithmeticRequest(0), ...spec }, environment }],
    group_size: 1,
    mode: 'eval',
    policy: { sampling: { max_tokens: 256 } },
    groups: { attempts: 1 },
    ...some,
  })
  const [group] = groups
  const [episode] = group!.episodes
  const { outcome, reward, reason, grade } = episode!
  return { outcome, reward, reason, grade, cost: group!.cost, group: group!, progress } as never
}

const grader = (name: string, some: JsonObject = {}) =>
  playOne({
    asks: [{ kind: 'grade', id: 'g', grader: name, input: { n: 1 }, params: { by: 2 }, ...some }],
  })
const judge = (rubric: string) =>
  playOne({
    asks: [
      {
        kind: 'judge',
        id: 'j',
        rubric: `rubric-${rubric}.`,
        transcript: [{ role: 'assistant', text: 'hm' }],
      },
    ],
  })

test('a custom grader scores, and the grade names it with version and hash', async () => {
  const { outcome, reward, grade, cost } = await grader('half')
  expect([outcome, reward]).toEqual(['ok', 0.5])
  expect(grade.evidence.answers.g).toMatchObject({
    by: { grader: 'half', version: 3, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    evidence: [1, 'x/Y-1'],
  })
  expect(cost.asked?.grade).toMatchObject({ requests: 1, prompt_tokens: 0 })
})

test.each([
  ['hang', 'verifier_error', /hang: gave no answer within 2 s/],
  ['crash', 'verifier_error', /crash: ended its own thread \(exit code 3\)/],
  ['memory', 'verifier_error', /memory: (died|gave no answer)/],
  ['thrower', 'verifier_error', /thrower: threw: process\.chdir/],
  ['unsure', 'verifier_error', /unsure: no evidence/],
  ['dice', 'verifier_error', /dice: threw: .*Math\.random/],
  ['nobody', 'verifier_error', /nobody: no loaded pack registers it/],
  ['wrongkey', 'contract_violation', /^score: .*"score" came as "reward"/],
  ['extra', 'contract_violation', /^bonus: /],
  ['nan', 'contract_violation', /^score: .*NaN/],
  ['over', 'contract_violation', /^score: .*1\.5/],
])(
  'a custom grader that is %s ends as %s and has no reward',
  async (name, outcome, reason) => {
    const came = await grader(name)
    expect(came).toMatchObject({ outcome, reward: null })
    expect(came.reason).toMatch(reason)
  },
  30_000,
)

test('a custom grader fills the fields of the contract that the environment names', async () => {
  const contract = {
    name: 'c',
    version: 1,
    fields: { fund: { type: 'number' } },
    scalar: 'fund',
    components: [],
  }
  const came = await grader('half', { contract })
  expect(came).toMatchObject({ outcome: 'contract_violation' })
  expect(came.reason).toMatch(/^fund: .*"fund" came as "score"/)
})

test('the judge scores, with model, sampling and attempts on record; an equal question is asked once', async () => {
  const first = await judge('half')
  expect([first.outcome, first.reward]).toEqual(['ok', 0.5])
  expect(first.grade.evidence.answers.j?.by).toMatchObject({
    judge: 'other-8b',
    sampling: { temperature: 0, top_p: 1, max_tokens: 512 },
    attempts: 1,
  })
  expect(first.cost.asked?.judge).toMatchObject({ requests: 1, kept: 0 })
  expect(first.cost.asked?.judge?.completion_tokens).toBeGreaterThan(0)
  const again = await judge('half')
  expect(again.reward).toBe(0.5)
  expect(again.cost.asked?.judge).toMatchObject({ requests: 0, kept: 1, completion_tokens: 0 })
})

test.each([
  ['prose', /JSON/],
  ['fenced', /JSON/],
  ['over', /score/],
  ['text', /score/],
  ['extra', /confidence/],
  ['twice', /"score\\?" stands twice/],
  ['down', /500/],
  ['hangs', /judge\.timeout_s ran out/],
])(
  'a judge whose answer is %s gives no score, ever',
  async (rubric, reason) => {
    const came = await judge(rubric)
    expect(came).toMatchObject({ outcome: 'verifier_error', reward: null })
    expect(came.reason).toMatch(reason)
    expect(came.reason).toContain('(attempt 2)')
  },
  30_000,
)

test('a model plays the user: what it says is answered, its tokens are apart', async () => {
  const { outcome, grade, cost } = await playOne({ user: 'You are Ada.' }, { user: 'model' })
  expect(outcome).toBe('ok')
  expect(grade.evidence).toMatchObject({ said: ['Yes, the small one.'] })
  expect(cost.asked?.user).toMatchObject({ requests: 1 })
  expect(cost.asked?.user?.completion_tokens).toBeGreaterThan(0)
})

test.each([
  ['down', /user: .*503/],
  ['slow', /user\.timeout_s ran out/],
])(
  'a user that is %s is the environment’s fault',
  async (who, reason) => {
    const came = await playOne({ user: `You are ${who}.` }, { user: 'model' })
    expect(came).toMatchObject({ outcome: 'infra_env', reward: null })
    expect(came.reason).toMatch(reason)
  },
  30_000,
)

test('the office’s own users may be played by a model, which ends the episode when it is content', async () => {
  const { id } = officeTasks().find(({ id }) => id === 'mt-01-which-order-to-cancel')!
  const { group } = await playOne({}, { user: 'model', tasks: [{ task: `office/${id}` }] })
  expect(group.episodes[0]?.outcome).toBe('ok')
  expect(group.cost.asked?.user?.requests).toBeGreaterThan(0)
})

const source = (path: string, some: JsonObject = {}): JsonObject => ({
  reward: { source: { http: { url: modelUrl(path), timeout_s: 1, retries: 1, ...some } } },
})

test.each([
  ['/good', 0.25, 1],
  ['/flaky', 0.75, 2],
])('a reward model at %s gives the reward', async (path, reward, requests) => {
  const came = await playOne({}, source(path))
  expect(came).toMatchObject({ outcome: 'ok', reward })
  expect(asked.filter((one) => one === path)).toHaveLength(requests)
  expect(came.cost.asked?.reward).toMatchObject({ requests: 1 })
})

test('a reward model is asked again when its Retry-After is over, and not at all where that is beyond its budget', async () => {
  expect(await playOne({}, source('/busy', { timeout_s: 5 }))).toMatchObject({ reward: 0.5 })
  const [first, second] = received.filter(({ path }) => path === '/busy')
  expect(second!.at - first!.at).toBeGreaterThan(950)
  const closed = await playOne({}, source('/closed', { budget_s: 20, retries: 3 }))
  expect(closed).toMatchObject({ outcome: 'verifier_error', reward: null })
  expect(closed.reason).toMatch(/status 503: tomorrow/)
  expect(asked.filter((one) => one === '/closed')).toHaveLength(1)
}, 30_000)

test('a reward model is told the metadata that the batch gave the task', async () => {
  const metadata = { reference: '42', row: [7] }
  const tasks = [{ spec: { request: arithmeticRequest(0) }, environment: 'asker', metadata }]
  await playOne({}, { ...source('/good'), tasks })
  const { body } = received.findLast(({ path }) => path === '/good')!
  expect(await body).toMatchObject({ task: expect.stringMatching(/^inline\//), metadata })
})

test('the progress tells by whom was asked, and what that cost', async () => {
  const { progress, cost } = await playOne({ user: 'You are Ada.' }, { user: 'model' })
  expect(cost.asked?.user).toMatchObject({ requests: 1 })
  const { delivered, retried, dropped } = progress.groups.costs
  expect(delivered.asked).toEqual(cost.asked)
  expect([retried.asked, dropped.asked]).toEqual([undefined, undefined])
})

test.each([
  ['/extra', 'contract_violation', /^bonus: /],
  ['/alias', 'contract_violation', /^score: .*came as "reward"/],
  ['/nan', 'contract_violation', /^score: /],
  ['/huge', 'contract_violation', /^score: /],
  ['/text', 'contract_violation', /^score: .*string/],
  ['/twice', 'contract_violation', /stands twice/],
  ['/badjson', 'verifier_error', /JSON/],
  ['/down', 'verifier_error', /status 500/],
  ['/redirect', 'verifier_error', /status 302/],
  ['/silent', 'verifier_error', /after 2 tries/],
])(
  'a reward model at %s ends as %s and gives none',
  async (path, outcome, reason) => {
    const came = await playOne({}, source(path))
    expect(came).toMatchObject({ outcome, reward: null })
    expect(came.reason).toMatch(reason)
  },
  30_000,
)

test('a reward model that nobody allowed is refused at submit', async () => {
  const http = { url: 'http://169.254.169.254/latest' }
  await expect(playOne({}, { reward: { source: { http } } })).rejects.toThrow(
    /reward\.source\.http\.url: .*reward\.allow/,
  )
})

test('a shipped task with a custom grader is graded in an episode as it declares', async () => {
  const { groups } = await house.run({
    id: `asked-${count++}`,
    tasks: [{ task: 'office/wf-13-phone-rota' }],
    group_size: 2,
    mode: 'eval',
    policy: { sampling: { max_tokens: 512 } },
  })
  expect(groups[0]?.episodes.map(({ outcome, reward }) => [outcome, reward])).toEqual([
    ['ok', 1],
    ['ok', 1],
  ])
}, 30_000)

test('progress is paid to the turns, once, and adds up to what was completed', async () => {
  const { groups } = await house.run({
    id: `asked-${count++}`,
    tasks: [{ task: 'office/dev-04-interview-slot' }],
    group_size: 1,
    mode: 'eval',
    reward: { progress: true },
    policy: { sampling: { max_tokens: 512 } },
  })
  const [episode] = groups[0]!.episodes
  const response = await fetch(`${house.url}/v1/episodes/${episode!.id}`)
  const { turns, rewards } = (await response.json()) as {
    turns: { reward: number }[]
    rewards: { completion: number }
  }
  const paid = turns.map(({ reward }) => reward)
  expect(paid.filter((reward) => reward > 0).length).toBeGreaterThan(0)
  expect(paid.reduce((sum, reward) => sum + reward, 0)).toBeCloseTo(rewards.completion, 4)
})
