// The table of checks in their order, and what they make of the evidence.
import {
  checkContract,
  checkEpisodes,
  checkLedger,
  checkPack,
  checkParsers,
  checkReasoning,
  checkRoundTrip,
  checkTape,
  checkToolFormat,
  checkTools,
} from './conversation-checks.ts'
import {
  checkClock,
  checkContext,
  checkDialect,
  checkEndpoint,
  checkLogprobsMode,
  checkReplies,
  checkSeed,
  checkTemperature,
  checkVersion,
} from './engine-checks.ts'
import type { Evidence } from './evidence.ts'
import { notChecked, type Verdict } from './findings.ts'

interface Check {
  name: string
  /** Whether it needs an engine that completes. */
  asksEngine: boolean
  judge(evidence: Evidence): Verdict
}

const CHECKS: readonly Check[] = [
  { name: 'endpoint', asksEngine: false, judge: checkEndpoint },
  { name: 'dialect', asksEngine: true, judge: checkDialect },
  { name: 'replies', asksEngine: true, judge: checkReplies },
  { name: 'logprobs', asksEngine: true, judge: checkLogprobsMode },
  { name: 'version', asksEngine: true, judge: checkVersion },
  { name: 'temperature', asksEngine: true, judge: checkTemperature },
  { name: 'seed', asksEngine: true, judge: checkSeed },
  { name: 'parsers', asksEngine: true, judge: checkParsers },
  { name: 'tool format', asksEngine: true, judge: checkToolFormat },
  { name: 'tools', asksEngine: true, judge: checkTools },
  { name: 'reasoning', asksEngine: true, judge: checkReasoning },
  { name: 'round trip', asksEngine: true, judge: checkRoundTrip },
  { name: 'context', asksEngine: true, judge: checkContext },
  { name: 'clock', asksEngine: true, judge: checkClock },
  { name: 'pack', asksEngine: false, judge: checkPack },
  { name: 'contract', asksEngine: false, judge: checkContract },
  { name: 'ledger', asksEngine: false, judge: checkLedger },
  { name: 'tape', asksEngine: true, judge: checkTape },
  { name: 'cost', asksEngine: true, judge: checkEpisodes },
]

/** Checks without which the others say nothing. */
const FIRST = ['endpoint', 'dialect']

export type CheckResult = { check: string } & Verdict

/** Every check's verdict, in order. Where nobody answers, or somebody else, what asks the engine is not judged. */
export function judge(evidence: Evidence): CheckResult[] {
  const first = CHECKS.find(
    ({ name, judge }) => FIRST.includes(name) && judge(evidence).status === 'finding',
  )
  return CHECKS.map(({ name, asksEngine, judge }) => ({
    check: name,
    ...(asksEngine && first && first.name !== name
      ? notChecked(`the ${first.name} comes first`)
      : judge(evidence)),
  }))
}
