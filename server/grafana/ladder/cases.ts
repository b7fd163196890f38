// Every fault of the ladder: how it is planted in a healthy house, and which alert has to tell of it.
import { statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { JsonObject } from '../../../protocol/json.ts'
import { LAB_TASK } from './lab.ts'
import type { Lane, LanePlan } from './lane.ts'

export interface Case {
  fault: string
  /** The first is the alert of the fault; others that it brings along and that page nobody. */
  alerts: string[]
  plan: LanePlan
  /** Plants the fault; null where it is there from the start. */
  plant: ((lane: Lane) => Promise<void> | void) | null
}

const { bavail, bsize } = statfsSync(tmpdir())

export const CASES: Case[] = [
  {
    fault: 'a tenth of the grades says reward for score',
    alerts: ['RewardContractBroken'],
    plan: {},
    plant: (lane) => lane.trouble.start('broken'),
  },
  {
    fault: 'the policy always succeeds',
    alerts: ['NoValidGroups'],
    plan: { mix: 'right=1' },
    plant: null,
  },
  {
    fault: 'the policy nearly always succeeds',
    alerts: ['ZeroVarianceHigh', 'BudgetWasted'],
    plan: { mix: 'right=12,wrong=1' },
    plant: null,
  },
  {
    fault: 'the temperature is ignored in most requests',
    alerts: ['SamplingDegenerate'],
    plan: { groupSize: 2 },
    plant: (lane) => lane.setFaults({ kind: 'greedy', rate: 0.8 }),
  },
  {
    fault: 'the backend echoes temperature 0',
    alerts: ['SamplingParamMismatch'],
    plan: { batch: { policy: { backend: 'whole' } } },
    plant: (lane) => lane.setFaults({ kind: 'echo', rate: 0.2 }),
  },
  {
    fault: 'one component is always 1',
    alerts: ['RewardComponentFlat'],
    plan: {},
    plant: (lane) => lane.trouble.start('flat'),
  },
  {
    fault: 'the environment throws in a third of its steps',
    alerts: ['InfraFailuresHigh'],
    // Groups large enough that nearly all have variance still.
    plan: { groupSize: 8, batch: { groups: { attempts: 1, on_short: 'close', min_scored: 2 } } },
    plant: (lane) => lane.trouble.start('throw'),
  },
  {
    fault: 'nothing of the first group can be graded',
    alerts: ['AdmissionPaused'],
    plan: { trouble: 'ungraded' },
    plant: null,
  },
  {
    fault: 'the backend is paused for an update that never comes',
    alerts: ['PauseForgotten'],
    plan: {},
    plant: (lane) => lane.post('/v1/policy', { backend: 'main', pause: true }),
  },
  {
    fault: 'the backend sends headers and then nothing',
    alerts: ['BackendDown'],
    plan: { batch: { limits: { turn_timeout_s: 5 } } },
    plant: (lane) => lane.setFaults({ kind: 'hang' }),
  },
  {
    fault: 'the backend process is gone',
    alerts: ['BackendDown'],
    plan: {},
    plant: (lane) => lane.simulator.stop(),
  },
  {
    fault: 'a fifth of the requests is answered 500',
    alerts: ['RetryBudgetSpent'],
    plan: {},
    plant: (lane) => lane.setFaults({ kind: '500', rate: 0.2 }),
  },
  {
    fault: 'the trainer is nine weight versions ahead',
    alerts: ['WeightsStale'],
    plan: { batch: { policy: { version: 1 } } },
    plant: (lane) => lane.post('/v1/policy', { backend: 'main', version: 10 }),
  },
  {
    fault: 'the trainer lives and takes nothing',
    alerts: ['QueueSaturated'],
    plan: { settings: () => ({ limits: { max_groups_ready: 4 } }) },
    async plant(lane) {
      lane.dismissTrainer()
      beat(lane, { step: 1, checkpoint_step: 1 })
      await submitMore(lane)
    },
  },
  {
    fault: 'the environment ends its thread in a fifth of its steps',
    alerts: ['WorkersCrashing'],
    plan: { settings: () => ({ runtime: { threads: 2 } }) },
    plant: (lane) => lane.trouble.start('exit'),
  },
  {
    fault: 'the process is stopped for half of each second',
    alerts: ['EventLoopBlocked'],
    plan: {},
    plant: (lane) => stutter(lane),
  },
  {
    fault: 'the server is killed',
    alerts: ['RolloutServerDown'],
    plan: {},
    plant: (lane) => lane.server.stop('SIGKILL'),
  },
  {
    fault: 'the trainer has no checkpoint at step 122',
    alerts: ['CheckpointBehind'],
    plan: {},
    plant: (lane) => lane.post('/v1/heartbeat', { step: 122, checkpoint_step: 60 }),
  },
  {
    fault: 'the trainer is gone',
    alerts: ['TrainerGone'],
    plan: {},
    async plant(lane) {
      await submitMore(lane)
      lane.dismissTrainer()
    },
  },
  {
    fault: 'the volume of the ledger has less left than is asked for',
    alerts: ['StoreFailing'],
    plan: {
      settings: (folder) => ({ ledger: { path: join(folder, 'ledger'), min_free_bytes: 0 } }),
      // The volume is what it is: the rule asks for ten times what it has left.
      freeBytes: bavail * bsize * 10,
    },
    plant: null,
  },
  {
    fault: 'each first lease runs out',
    alerts: ['RedeliveriesHigh'],
    plan: { lease: { lease_s: 1, abandon: true } },
    plant: null,
  },
]

/** No fault can be planted for these: the code would have to be wrong. Their rules have unit tests. */
export const NOT_PLANTED = ['ConservationBroken']

/** A batch for which no trainer comes. */
async function submitMore(lane: Lane): Promise<void> {
  await lane.post('/v1/batches', { tasks: Array(8).fill(LAB_TASK), group_size: 4 })
}

/** The trainer's heartbeat, each second. */
function beat(lane: Lane, heartbeat: JsonObject): void {
  const timer = setInterval(() => lane.post('/v1/heartbeat', heartbeat).catch(() => {}), 1000)
  lane.closing.addEventListener('abort', () => clearInterval(timer))
}

/** Stops the server's process again and again, as a starved machine does. */
function stutter(lane: Lane): void {
  const { process: child } = lane.server
  let running = true
  const timer = setInterval(() => {
    running = !running
    child.kill(running ? 'SIGCONT' : 'SIGSTOP')
  }, 500)
  lane.closing.addEventListener('abort', () => {
    clearInterval(timer)
    child.kill('SIGCONT')
  })
}
