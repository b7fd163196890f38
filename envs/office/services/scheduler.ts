// The scheduler service: scheduled jobs.
import {
  bool,
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
import { done, type Outcome, refuse } from '../kernel/outcome.ts'
import type { Args, Transaction } from '../kernel/transaction.ts'

const lastStatus = oneOf('success', 'failed', 'never')

export const scheduler = defineService({
  name: 'scheduler',
  title: 'Scheduled jobs',
  entities: {
    job: {
      id: 'job_id',
      prefix: 'JB',
      fields: {
        job_id: id,
        name: str,
        cron: str,
        action: str,
        enabled: bool,
        last_status: lastStatus,
        last_run: opt(datetime),
        tags: list(str),
        owner: opt(email),
      },
      search: ['name', 'action'],
      stamps: ['last_run'],
    },
    run: {
      id: 'run_id',
      prefix: 'RN',
      fields: {
        run_id: id,
        job_id: ref('scheduler.job'),
        at: datetime,
        status: oneOf('success', 'failed'),
        error: opt(text),
        trigger: oneOf('cron', 'manual'),
      },
      sort: ['at', 'desc'],
      stamps: ['at'],
    },
  },
  tools: {
    scheduler_list_jobs: {
      op: 'list',
      entity: 'job',
      params: { enabled: opt(bool), last_status: opt(lastStatus), tag: opt(str) },
      filters: { tag: ['tags', 'has'] },
    },
    scheduler_get_job: { op: 'get', entity: 'job' },
    scheduler_job_history: {
      op: 'list',
      entity: 'run',
      params: { job_id: ref('scheduler.job') },
    },
    scheduler_create_job: {
      op: 'create',
      entity: 'job',
      params: { name: str, cron: str, action: str, enabled: opt(bool), tags: opt(list(str)) },
      defaults: { enabled: true, last_status: 'never', tags: [], owner: '@actor' },
    },
    scheduler_update_job: {
      op: 'update',
      entity: 'job',
      params: { cron: opt(str), action: opt(str), enabled: opt(bool), tags: opt(list(str)) },
    },
    scheduler_run_job: {
      op: 'custom',
      entity: 'run',
      params: { job_id: ref('scheduler.job') },
      write: true,
      errors: ['INVALID_STATE'],
      about: 'Runs an enabled job now.',
      handler: runJob,
    },
    scheduler_delete_job: { op: 'delete', entity: 'job' },
  },
})

type Job = RecordOf<typeof scheduler.entities.job>

function runJob(transaction: Transaction, args: Args): Outcome {
  const jobId = args.job_id as string
  if (!transaction.find<Job>('scheduler.job', jobId)!.enabled)
    return refuse('INVALID_STATE', `expected an enabled job, ${jobId} is disabled`)
  const run = transaction.create('scheduler.run', {
    job_id: jobId,
    at: transaction.now,
    status: 'success',
    trigger: 'manual',
  })
  const patch = { last_status: 'success', last_run: transaction.now }
  transaction.change('scheduler.job', jobId, patch)
  return done(run)
}
