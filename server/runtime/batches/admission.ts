// Which groups of the running batches may start: the reducer's state, and who is told of its answers.
import type { AdmissionPause } from '../../../protocol/batch.ts'
import { isScored } from '../../../protocol/outcomes.ts'
import {
  type AdmissionEvent,
  admissionReducer,
  type Candidate,
  type GroupEnd,
  noAdmission,
} from '../../../rollout/admission.ts'
import type { KnownTask } from '../packs/tasks.ts'
import type { BatchPlan } from './batch-plan.ts'
import { firstReason } from './batch-progress.ts'
import { type GroupRun, judge } from './group-run.ts'

/** Told to a batch: its groups that may start now, and that it was paused. */
interface AdmissionListener {
  start(group: GroupRun): void
  onPause(pause: AdmissionPause): void
}

/** One batch's side of it. */
interface BatchAdmission {
  /** Groups that want to start, in their order. */
  arrive(groups: readonly GroupRun[]): void
  /** A group is over and about to settle. */
  end(group: GroupRun): void
  /** The batch starts nothing any more. */
  leave(): void
  resume(): void
  pause(): AdmissionPause | null
}

export interface Admission {
  /** `pause`: the one that it had before a restart. */
  open(plan: BatchPlan, listener: AdmissionListener, pause: AdmissionPause | null): BatchAdmission
}

/** What was seen to work, and what was wasted lately, is known over all batches. An evaluation is never stopped. */
export function createAdmission(
  onCanary: (result: 'passed' | 'refused' | 'silent') => void = () => {},
): Admission {
  let state = noAdmission

  function feed(
    event: AdmissionEvent,
    start: (group: string) => void,
    onPause: AdmissionListener['onPause'],
  ): void {
    const { pause: before = null, canaries } = state.batches.get(event.batch) ?? {}
    const next = admissionReducer(state, event)
    state = next.state
    const pause = state.batches.get(event.batch)?.pause ?? null
    if (event.type === 'end' && canaries?.get(event.combination) === event.group)
      onCanary(pause?.group === event.group ? 'refused' : event.scored > 0 ? 'passed' : 'silent')
    if (pause && !before) onPause(pause)
    for (const group of next.started) start(group)
  }

  return {
    open(plan, listener, pause) {
      const batch = plan.id
      if (plan.request.mode === 'eval') return admitsAll(listener)
      /** Groups that have not been let start. */
      const waiting = new Map<string, GroupRun>()
      /** A group that is over and then fails to settle is over once. */
      const over = new Set<string>()
      const tell = (event: AdmissionEvent) => feed(event, start, listener.onPause)
      function start(id: string): void {
        const group = waiting.get(id)
        waiting.delete(id)
        if (group) listener.start(group)
      }
      if (pause) state = admissionReducer(state, { type: 'pause', batch, pause }).state
      return {
        arrive(groups) {
          for (const group of groups) waiting.set(group.id, group)
          const candidates = groups.map((group) => candidateOf(plan, group))
          tell({ type: 'arrive', batch, candidates })
        },
        end(group) {
          if (over.has(group.id)) return
          over.add(group.id)
          tell({ type: 'end', batch, ...candidateOf(plan, group), ...endOf(plan, group) })
        },
        leave: () => tell({ type: 'leave', batch }),
        resume: () => tell({ type: 'resume', batch }),
        pause: () => state.batches.get(batch)?.pause ?? null,
      }
    },
  }
}

function admitsAll(listener: AdmissionListener): BatchAdmission {
  return {
    arrive(groups) {
      for (const group of groups) listener.start(group)
    },
    end() {},
    leave() {},
    resume() {},
    pause: () => null,
  }
}

function candidateOf(plan: BatchPlan, { id, known }: GroupRun): Candidate {
  return { group: id, combination: combinationOf(plan, known) }
}

/** Whoever has a hand in a reward: where one of them is another, nothing is known of it. */
export function combinationOf(
  { contractLabel, policy, asked }: Pick<BatchPlan, 'contractLabel' | 'policy' | 'asked'>,
  { task, graders }: Pick<KnownTask, 'task' | 'graders'>,
): string {
  const models = [asked?.judge, asked?.user].map((chat) => chat && [chat.backend, chat.model])
  const { environment } = task
  return JSON.stringify([
    ...[contractLabel, environment, graders, policy.backend, policy.url],
    ...[models, asked?.reward?.url],
  ])
}

function endOf(plan: BatchPlan, group: GroupRun): GroupEnd {
  const outcomes = group.state.members.map(({ outcome }) => outcome ?? 'aborted')
  const count = (name: string) => outcomes.filter((outcome) => outcome === name).length
  const scored = outcomes.filter(isScored).length
  const broken = count('contract_violation')
  return {
    verdict: judge(plan, group).verdict,
    scored,
    records: scored + broken,
    broken,
    ungraded: count('verifier_error'),
    reason: firstReason(group),
  }
}
