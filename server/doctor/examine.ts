// Gathers the evidence: asks the backend, looks at pack, contract and ledger, and plays episodes where all is well so far.
import type { Environment, Task } from '../../envs/environment.ts'
import type { Message } from '../../protocol/conversation.ts'
import { PaddockError } from '../../protocol/errors.ts'
import { bindConsumer, contractLabel } from '../../reward/contract.ts'
import type { ChatModel } from '../../rollout/chat/chat-model.ts'
import type { Settings } from '../settings.ts'
import type { Asker } from './asker.ts'
import { judge } from './checks.ts'
import { checkDialect, checkEndpoint, isCompletion } from './engine-checks.ts'
import { engineFacts } from './engine-facts.ts'
import type { EndpointProbe, Evidence, ReasoningKept, Subject } from './evidence.ts'
import type { House } from './house.ts'
import { probeLedger } from './ledger-probe.ts'
import { createProber, type Opening, type Prober } from './prober.ts'
import { roundTrip } from './round-trip.ts'
import { sampleEpisodes } from './sample-episodes.ts'

export interface Patient extends House {
  subject: Subject
  /** One for each endpoint of the backend. */
  askers: readonly [Asker, ...Asker[]]
  /** What the trainer says it reads. */
  reads: readonly string[]
  ledger: Settings['ledger']
  /** Of the episodes that are played. */
  temperature: number
  answerTokens: number
  maxTurns: number
  episodes: number
}

/** Seeds of the plain prompt: enough that a repeated completion is no accident. */
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8]
const COOL = 0.5
const TOOL_TASKS = 3
const TOOL_SEEDS = [1, 2]

export async function examine(patient: Patient, say: (what: string) => void): Promise<Evidence> {
  const { subject, engine, environment, pack } = patient
  const [asker] = patient.askers
  const model = engine.chatModel(subject.backend)
  const prober = createProber(subject, model, asker)
  say('asking for one token')
  const [endpoints, facts] = await Promise.all([
    Promise.all(patient.askers.map((one) => askEndpoint(one, createProber(subject, model, one)))),
    engineFacts(asker, subject.model),
  ])
  const base: Evidence = {
    ...{ subject, engine: facts, endpoints, pack },
    ...{ warm: [], cool: [], again: null, greedy: null, toolTurns: [], reasoning: null },
    roundTrip: [],
    contract: contractEvidence(environment, patient.reads),
    ledger: await probeLedger(patient.ledger),
    episodes: null,
  }
  if ([checkEndpoint, checkDialect].some((check) => check(base).status === 'finding')) return base
  say('asking one prompt at several temperatures and seeds')
  const plain = await askPlain(prober)
  say('asking for the first turns of tasks')
  const openings = patient.tasks.slice(0, TOOL_TASKS).map((task) => openingOf(task, environment))
  const turns = openings.flatMap((opening) =>
    TOOL_SEEDS.map((seed) => prober.toolTurn(opening, seed)),
  )
  const probed: Evidence = {
    ...base,
    ...plain,
    toolTurns: await Promise.all(turns),
    reasoning: await askReasoning(subject, model, prober),
    roundTrip: await roundTrip(subject, model, prober),
  }
  // What is wrong already would only be found again in every episode.
  if (judge(probed).some(({ status }) => status === 'finding')) return probed
  say(`playing ${patient.episodes} episodes`)
  return { ...probed, episodes: await playSome(patient) }
}

async function askEndpoint(asker: Asker, prober: Prober): Promise<EndpointProbe> {
  const probe = await prober.first()
  const listens = probe.answer.kind === 'reply' || (await asker.get('/v1/models')) !== null
  return { url: asker.url, listens, ...probe }
}

async function askPlain(
  prober: Prober,
): Promise<Pick<Evidence, 'warm' | 'cool' | 'again' | 'greedy'>> {
  const [warm, cool, again, greedy] = await Promise.all([
    Promise.all(SEEDS.map((seed) => prober.plain(1, seed))),
    Promise.all(SEEDS.map((seed) => prober.plain(COOL, seed))),
    prober.plain(1, SEEDS[0] as number),
    prober.plain(0, SEEDS[0] as number),
  ])
  return { warm, cool, again, greedy }
}

function openingOf(task: Task, environment: Environment): Opening {
  const state = environment.reset(task, 0)
  return { task: task.id, messages: environment.open(state), tools: environment.tools(state) }
}

/** No text of a prompt but the thought itself has it. */
const THOUGHT = 'the ledger of plums is blue'

async function askReasoning(
  { mode, thinking }: Subject,
  model: ChatModel | null,
  { behind }: Prober,
): Promise<ReasoningKept | null> {
  if (mode === 'tokens' || thinking === 'none' || !model) return null
  // A template that opens the thought itself leaves its tag out of what is sampled.
  const opened = thinking === 'prefilled' ? '' : '<think>\n'
  const said: readonly Message[] = [
    { role: 'user', content: 'Look it up.' },
    { role: 'assistant', content: `${opened}${THOUGHT}\n</think>\n\nI am looking.` },
  ]
  const holds = async (next: Message): Promise<boolean | null> => {
    const { strict } = await behind([...said, next], [])
    if (!isCompletion(strict) || !strict.promptIds) return null
    return model.decode(strict.promptIds).includes(THOUGHT)
  }
  const [beforeTool, beforeUser] = await Promise.all([
    holds({ role: 'tool', name: 'look', tool_call_id: 'call_1', content: 'Found.' }),
    holds({ role: 'user', content: 'And then?' }),
  ])
  return { beforeTool, beforeUser }
}

function contractEvidence(
  { contract }: Environment,
  reads: readonly string[],
): Evidence['contract'] {
  const label = contractLabel(contract)
  try {
    bindConsumer(contract, { reads, rename: {} })
    return { label, reads, problem: null }
  } catch (error) {
    if (!(error instanceof PaddockError)) throw error
    return { label, reads, problem: error.message }
  }
}

function playSome(patient: Patient): Promise<Evidence['episodes']> {
  const { subject, engine, environment, askers } = patient
  const { dialect, backend, model, mode, toolFormat, thinking, episodeTokens } = subject
  const { stream, firstPrompt } = subject
  const tasks = Array.from(
    { length: patient.tasks.length === 0 ? 0 : patient.episodes },
    (_, index) => patient.tasks[index % patient.tasks.length] as Task,
  )
  return sampleEpisodes(
    tasks,
    {
      ...{ engine, environment, contract: environment.contract },
      policy: {
        ...{ dialect, backend, model, mode, stream, firstPrompt, toolFormat, thinking },
        leniencies: [],
        sampling: {
          temperature: patient.temperature,
          top_p: 1,
          max_tokens: patient.answerTokens,
        },
        version: null,
        seedBase: 'doctor',
        chatTemplateKwargs: {},
        controlTokens: 'refuse',
      },
      limits: { maxTurns: patient.maxTurns, maxTokens: episodeTokens },
    },
    askers[0],
  )
}
