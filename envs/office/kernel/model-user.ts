// The user where a model plays it: what the model is told, and what of its words is an end.
import type { Message } from '../../../protocol/conversation.ts'
import type { PlayedSpec } from '../spec.ts'
import type { SaidMessage } from './state.ts'

/** What the model says alone when it has what it wanted. */
export const DONE = '###DONE###'

/** The conversation from the user's side: whom it plays, what it may tell, and what was said so far. */
export function userMessages(
  spec: Pick<PlayedSpec, 'actor' | 'request' | 'user'>,
  messages: readonly SaidMessage[],
): Message[] {
  const said = messages.filter(({ beside_calls }) => !beside_calls)
  return [
    { role: 'system', content: instructions(spec) },
    ...said.map(
      ({ role, text }): Message => ({
        role: role === 'assistant' ? 'user' : 'assistant',
        content: text,
      }),
    ),
  ]
}

/** The script's own lines are what the user knows: the model tells the same, in its own time and words. */
function instructions({ actor, request, user }: Parameters<typeof userMessages>[0]): string {
  const { persona = '', rules = [] } = user.mode === 'scripted' ? user : {}
  return [
    `You play ${actor.name} (${actor.email}), who has asked an assistant to do something and now answers its messages.`,
    ...(persona ? [`About you: ${persona}`] : []),
    `What you asked for: ${request}`,
    ...(rules.length > 0
      ? ['What you know. Tell each only where the assistant asks for it:']
      : ['You know nothing beyond that.']),
    ...rules.map(({ say }) => `- ${say}`),
    'Answer with one short message as that person would write it, and nothing else. Never do the work of the assistant, and invent no facts.',
    `When the assistant says that all is done, or you cannot help any further, answer with ${DONE} alone.`,
  ].join('\n')
}
