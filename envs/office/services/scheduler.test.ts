// Running a job by hand.
import { expect, test } from 'vitest'
import { callAll } from '../transcripts.testkit.ts'

const job = (n: number, enabled: boolean) => ({
  job_id: `JB-${n}`,
  name: 'Backup',
  cron: '0 3 * * *',
  action: 'backup',
  enabled,
  last_status: 'failed',
  tags: [],
})
const scheduler = { initial_state: { scheduler: { job: [job(1, true), job(2, false)] } } }
const run = (job_id: string) => ['scheduler_run_job', { job_id }] as const

test('writes a successful manual run and the job’s last status', () => {
  const { result, state } = callAll(scheduler, run('JB-1'))
  const at = '2027-03-10T11:00:01+01:00'
  expect(result).toEqual({
    run_id: 'RN-N1',
    job_id: 'JB-1',
    at,
    status: 'success',
    trigger: 'manual',
  })
  expect(state.tables['scheduler.job']![0]).toEqual({
    ...job(1, true),
    last_status: 'success',
    last_run: at,
  })
})

test('a disabled job and one that is not there are refused', () => {
  expect(callAll(scheduler, run('JB-2')).error).toBe('INVALID_STATE')
  expect(callAll(scheduler, run('JB-9')).error).toBe('REF_NOT_FOUND')
})
