// Injected faults: which of a task's declared failures meets a call, and what the model is told of it.
import type { Tool } from '../catalogue/derive.ts'
import { type Moment, meets } from '../grading/conditions.ts'
import type { Fault } from '../spec.ts'
import { type Refusal, refuse } from './outcome.ts'
import type { OfficeState } from './state.ts'
import type { Args } from './transaction.ts'

export interface Meeting {
  /** The fault that the call meets, if any. */
  fault: Fault | null
  fault_calls: OfficeState['fault_calls']
}

/**
 * Counts the call for every fault of this phase whose tool and conditions it fits, and says which fires: the first that
 * is due. A fault of phase `after_commit` sees only calls that did their work.
 */
export function meetFaults(
  state: Pick<OfficeState, 'spec' | 'fault_calls'>,
  phase: Fault['phase'],
  tool: Tool,
  args: Args,
  moment: Moment,
): Meeting {
  const fault_calls = [...state.fault_calls]
  let met: Fault | null = null
  for (const [i, fault] of state.spec.faults.entries()) {
    if (fault.phase !== phase || fault.tool !== tool.name) continue
    if (fault.args && !meets(args, fault.args, tool.params, moment)) continue
    fault_calls[i] = (fault_calls[i] ?? 0) + 1
    const first = fault.nth ?? 1
    const due = fault_calls[i]! >= first && fault_calls[i]! < first + (fault.times ?? 1)
    if (due) met ??= fault
  }
  return { fault: met, fault_calls }
}

const MESSAGES: Record<Fault['code'], string> = {
  RATE_LIMITED: 'too many requests; try again',
  UNAVAILABLE: 'the service is not available at the moment; try again',
  TIMEOUT: 'the service did not answer in time; whether the call took effect is not known',
}

/** The failure that a fault shows. */
export const faultRefusal = ({ code, message }: Fault): Refusal =>
  refuse(code, message ?? MESSAGES[code])
