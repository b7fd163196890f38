// The composition root: the one place where pool, client, ledger, metrics and routes meet.
import type { Logger } from 'pino'
import { PaddockError } from '../protocol/errors.ts'
import type { Ledger } from '../rollout/ports.ts'
import { createAccess } from './access.ts'
import { createApp } from './app.ts'
import type { Config } from './config.ts'
import { openBoard, type SampledBoard } from './dash/sampler.ts'
import { type Door, takeDoor } from './door.ts'
import { openLmdbStore } from './ledger/lmdb-store.ts'
import { openLedger } from './ledger/open-ledger.ts'
import type { Listener } from './listen.ts'
import { measuredBeside } from './metrics/measured-beside.ts'
import { measuredLedger } from './metrics/measured-ledger.ts'
import { createMetrics, type Metrics, type MetricsSources } from './metrics/metrics.ts'
import { createBeside } from './runtime/asking/beside.ts'
import { createGraders } from './runtime/asking/graders.ts'
import { createGuardedHttp } from './runtime/asking/guarded-url.ts'
import { createRollouts, type Rollouts } from './runtime/batches/rollouts.ts'
import { createScheduler } from './runtime/batches/scheduler.ts'
import { gradersOf, type Pack, readPacks } from './runtime/packs/packs.ts'
import { loadTasks, type TaskCatalogue } from './runtime/packs/tasks.ts'
import { createPolicyBoard } from './runtime/policy/policy-board.ts'
import { createPolicyClient } from './runtime/policy/policy-client.ts'
import { createPool } from './runtime/threads/pool.ts'
import { poolOptions } from './runtime/threads/pool-options.ts'
import { VERSION } from './version.ts'
import { createStreamServer } from './websocket.ts'

/** A reward model's answer is a few numbers. */
const MAX_REWARD_BYTES = 2 ** 20

export interface Running {
  url: string
  /** Stops admission, lets what runs end within `server.drain_timeout_s`, closes everything. */
  close(): Promise<void>
}

/**
 * Loads threads and tasks behind the door, which is taken here where it is not open yet: requests that come in between
 * wait. `onStoreFailed` is called when the ledger cannot be written any more: the process has to end then, and a new one
 * goes on from what is stored. `openStore` is what the ledger lies in where it has a folder. Throws PaddockError
 * `invalid_config` where a port, pack, module or model folder cannot be had.
 */
export async function serve(
  config: Config,
  log: Logger,
  onStoreFailed: () => void = () => {},
  openStore: typeof openLmdbStore = openLmdbStore,
  taken: Door | null = null,
): Promise<Running> {
  const { listener, open } = taken ?? (await takeDoor(config))
  try {
    const house = await build(config, log, onStoreFailed, openStore)
    const closing = new AbortController()
    const access = createAccess(config)
    const app = createApp(house.rollouts, config, {
      access,
      closing: closing.signal,
      board: house.dashboard,
      observe: ({ route, status, seconds, refusal }) =>
        house.metrics.httpAnswered(route, status, seconds, refusal),
      onFault: (error, route) => log.error({ err: error, route }, 'a request failed'),
      onCallback: house.metrics.calledBack,
      onCallbackFailure: (batch, reason) => log.warn({ batch, reason }, 'a callback was not taken'),
    })
    const stream = createStreamServer(house.rollouts, config, {
      access,
      onFault: (error) => log.error({ err: error }, 'a stream failed'),
      onOpen: house.metrics.socketOpened,
      onClose: house.metrics.socketClosed,
    })
    house.watchSockets(stream.bufferedBytes)
    open({ fetch: app.fetch, upgrade: stream.upgrade })
    return { url: listener.url, close: () => close(config, listener, house, stream, closing) }
  } catch (error) {
    await listener.close(0)
    throw error
  }
}

interface House {
  rollouts: Rollouts
  metrics: Metrics
  dashboard: SampledBoard
  /** Tells the metrics where to read what the WebSockets have not sent. */
  watchSockets(bufferedBytes: () => number): void
  release(): Promise<void>
}

async function build(
  config: Config,
  log: Logger,
  onStoreFailed: () => void,
  openStore: typeof openLmdbStore,
): Promise<House> {
  const packs = await readPacks(config)
  const pool = createPool(poolOptions(config, packs))
  let ledger: Ledger | null = null
  try {
    await pool.ready()
    const tasks = await loadTasks(packs, pool)
    refuseFailingTasks(config, tasks)
    tellWhatWasLoaded(config, packs, tasks, log)
    const scheduler = createScheduler(config.runtime.max_episodes)
    const envs = [...new Set(['office', 'arithmetic', ...Object.keys(config.environments)])]
    const contracts = await pool.run('environments', null)
    const lists = {
      env: envs,
      backend: Object.keys(config.backends),
      component: Object.fromEntries(envs.map((env) => [env, contracts[env]?.components ?? []])),
      version: VERSION,
      node: process.version,
    }
    let socketBytes = () => 0
    const sources: MetricsSources = {
      pool: () => pool.stats(),
      queueDepth: () => ({ episodes: scheduler.waiting(), ...kept.standing() }),
      oldest: () => ({ episode: scheduler.oldest(), ready: kept.oldestReady() }),
      queueCapacity: { batches: config.limits.max_batches, ready: config.limits.max_groups_ready },
      batches: () => rollouts.standing(),
      backendInFlight: (backend) => client.inFlight(backend),
      socketBytes: () => socketBytes(),
      store: () => kept.volume(),
    }
    const metrics: Metrics = createMetrics(lists, sources, undefined, (backend, silence) =>
      silence
        ? log.warn({ backend, ...silence }, 'a backend gives no tokens')
        : log.warn({ backend }, 'a backend gives tokens again'),
    )
    const hooks = {
      onFailure(error: Error) {
        log.fatal({ err: error }, `${error.message}; nothing more is taken, and the server ends`)
        scheduler.pause(true)
        onStoreFailed()
      },
      onBad(key: string) {
        metrics.quarantined(key)
        log.error({ key }, 'a record of the ledger is damaged and is set aside')
      },
      onExpired: metrics.leasesExpired,
    }
    ledger = openLedger(config.ledger, hooks, openStore)
    const kept = measuredLedger(ledger, metrics)
    const board = createPolicyBoard()
    const rewardModels = createGuardedHttp({
      allow: config.reward.allow,
      setting: 'reward.allow',
      maxReplyBytes: MAX_REWARD_BYTES,
    })
    const graders = createGraders(gradersOf(packs))
    const client = createPolicyClient(config.backends, board, metrics)
    const beside = measuredBeside(createBeside({ client, graders, rewardModels }), metrics)
    pool.onExit(metrics.workerExit)
    pool.onSpent(metrics.spent)
    const rollouts = createRollouts({
      config,
      tasks,
      pool,
      client,
      board,
      beside,
      scheduler,
      ledger: kept,
      metrics,
      now: () => Date.now() / 1000,
      onError: (error) => log.error({ err: error }, 'a batch could not go on'),
      onDropped: (group, verdict, reason) =>
        log.warn({ group, verdict, reason }, 'a group was dropped'),
      onUndeliverable: (group, reason) =>
        log.error({ group, reason }, 'no body can be made of a group, and it is given up'),
    })
    const recovered = await rollouts.restore()
    if (recovered.batches > 0) log.info(recovered, 'what the ledger has was taken up')
    const dashboard = openBoard(
      config.dashboard,
      metrics.samples,
      (query) => pool.run('query', query),
      (error) => log.error({ err: error }, 'the series could not be sampled for /dash'),
    )
    return {
      rollouts,
      metrics,
      dashboard,
      watchSockets(bufferedBytes) {
        socketBytes = bufferedBytes
      },
      async release() {
        dashboard.close()
        await client.close()
        await graders.close()
        await rewardModels.close()
        await pool.close()
        await kept.close()
      },
    }
  } catch (error) {
    await pool.close()
    await ledger?.close()
    throw error
  }
}

/** Throws `invalid_config` with every task that fails, where the settings take none. */
function refuseFailingTasks({ strict_packs }: Config, { refused }: TaskCatalogue): void {
  if (!strict_packs || refused.length === 0) return
  const failing = refused.map(({ id, problem }) => `${id}: ${problem}`).join('; ')
  throw new PaddockError(
    'invalid_config',
    `the gate refuses tasks of the packs: ${failing}; mend them, or start without --strict (strict_packs: false), which leaves them out`,
    { path: 'packs' },
  )
}

function tellWhatWasLoaded(
  config: Config,
  packs: readonly Pack[],
  tasks: TaskCatalogue,
  log: Logger,
): void {
  for (const { id, problem } of tasks.refused)
    log.warn({ task: id, problem }, 'a task was left out')
  const loaded = packs.map(({ name, hash }) => ({
    pack: name,
    tasks: tasks.summaries(name).length,
    sha256: hash,
  }))
  log.info({ packs: loaded }, 'tasks are loaded')
  for (const [backend, { model_dir }] of Object.entries(config.backends))
    if (model_dir === undefined)
      log.warn({ backend }, 'the backend names no model_dir: its episodes have no token tapes')
}

async function close(
  config: Config,
  listener: Listener,
  { rollouts, release }: House,
  stream: { close(): Promise<void> },
  closing: AbortController,
): Promise<void> {
  const graceMs = config.server.drain_timeout_s * 1000
  await rollouts.drain(graceMs)
  closing.abort()
  await stream.close()
  await listener.close(Math.min(graceMs, 2000))
  await release()
}
