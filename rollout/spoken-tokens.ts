// Control tokens in what an environment says as user or system, or in its tools: a fault of the environment.
import type { ToolDefinition } from '../protocol/conversation.ts'
import type { ControlTokens } from './chat/control-tokens.ts'
import type { EpisodeState } from './episode.ts'

/**
 * What the environment says in the place of user and system may quote markup, but not the tokens that part turns: it
 * would speak for the policy. The sentence of a fault; null where all is well.
 */
export function spokenControlToken(
  { plan, messages, turns }: EpisodeState,
  tools: readonly ToolDefinition[],
  controlTokens: ControlTokens,
): string | null {
  const opening = turns.length === 0
  if (!opening && plan.policy.controlTokens === 'plain') return null
  const said = messages
    .slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1)
    .filter(({ role }) => role !== 'tool')
  const texts = said.map(({ role, content }) => ({ place: `the ${role} message`, text: content }))
  if (opening) texts.push({ place: 'the list of tools', text: JSON.stringify(tools) })
  for (const { place, text } of texts) {
    const [token] = controlTokens.special(text)
    if (token) return `${place} spells out the control token ${token}: take it out of the text`
  }
  return null
}
