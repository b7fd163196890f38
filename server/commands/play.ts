// `paddock play`: a person plays a task in the terminal, in the place of the policy, and sees how it is graded.
import { createInterface } from 'node:readline'
import type { Readable, Writable } from 'node:stream'
import { askGraders, graded } from '../../envs/graded.ts'
import type { ToolCall, ToolDefinition } from '../../protocol/conversation.ts'
import { isPlainObject, type JsonObject } from '../../protocol/json.ts'
import { explainGrade } from './explain-grade.ts'
import type { NamedTask } from './named-task.ts'
import { expectPlayable, seedOf } from './replay.ts'

const HELP = [
  'tool {"argument": …}   calls a tool; without arguments the name alone',
  'any other text         is a message to the user; where no user answers it ends the episode',
  '/tools                 lists the tools; /tools NAME shows the parameters of one',
  '/end                   grades what has been done so far',
].join('\n')

/** Plays until the episode ends, the input does, or the person says so; then explains the grade. `json`: JSON Lines out. */
export async function playTask(
  named: NamedTask,
  terminal: { input: Readable; output: Writable } = {
    input: process.stdin,
    output: process.stdout,
  },
  json = false,
): Promise<void> {
  const { task, environment, graders } = named
  expectPlayable(named)
  /** With `json` the record, a line; else the text. */
  const show = (text: string, record: JsonObject = { type: 'note', text }) =>
    terminal.output.write(`${json ? JSON.stringify(record) : text}\n`)
  let state = environment.reset(task, seedOf(task))
  let turn = 0
  const tools = environment.tools(state)
  for (const { role, content } of environment.open(state))
    show(`[${role}]\n${content}\n`, { type: 'message', role, content })
  show(`${toolList(tools)}\n\n${HELP}\n`, { type: 'tools', tools: tools as never })
  const lines = createInterface(json ? { input: terminal.input } : { ...terminal, prompt: '> ' })
  if (!json) lines.prompt()
  for await (const line of lines) {
    const move = moveOf(line.trim(), tools)
    if (move.kind === 'end') break
    if (move.kind === 'show') show(move.text)
    else {
      const came =
        move.kind === 'call'
          ? environment.step(state, move.call(turn), turn)
          : environment.reply(state, move.text, turn)
      state = came.state
      turn++
      if ('observation' in came)
        show(came.observation.content, { type: 'observation', ...came.observation } as JsonObject)
      if ('say' in came)
        show(`[user]\n${came.say}`, { type: 'message', role: 'user', content: came.say ?? null })
      const end = 'end' in came ? came.end : undefined
      if (end !== undefined) {
        show(`The episode has ended (${end}).`, { type: 'end', end })
        break
      }
    }
    if (!json) lines.prompt()
  }
  lines.close()
  const grade = graded(environment, state, askGraders(graders))
  show(`\n${explainGrade(grade)}`, { type: 'grade', ...grade } as unknown as JsonObject)
}

type Move =
  | { kind: 'end' }
  | { kind: 'show'; text: string }
  | { kind: 'say'; text: string }
  | { kind: 'call'; call(turn: number): ToolCall }

/** What a line asks for. Arguments that are no JSON object are told and cost no turn. */
function moveOf(line: string, tools: readonly ToolDefinition[]): Move {
  if (line === '') return { kind: 'show', text: HELP }
  if (line === '/end') return { kind: 'end' }
  const [word = '', rest = ''] = line.split(/\s+(.*)/s)
  if (word === '/tools')
    return { kind: 'show', text: rest ? parameters(tools, rest) : toolList(tools) }
  if (word.startsWith('/')) return { kind: 'show', text: HELP }
  if (!tools.some((tool) => tool.function.name === word)) return { kind: 'say', text: line }
  const text = rest.trim() || '{}'
  const given = parsed(text)
  if (!isPlainObject(given))
    return {
      kind: 'show',
      text: `expected the arguments of ${word} as a JSON object, found ${text}`,
    }
  const args = given as JsonObject
  return {
    kind: 'call',
    call: (turn) => ({ id: `call_${turn}`, name: word, arguments: args, arguments_json: text }),
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function toolList(tools: readonly ToolDefinition[]): string {
  const width = Math.max(0, ...tools.map(({ function: { name } }) => name.length))
  return tools
    .map(({ function: { name, description } }) => `${name.padEnd(width)}  ${description}`)
    .join('\n')
}

function parameters(tools: readonly ToolDefinition[], name: string): string {
  const tool = tools.find((one) => one.function.name === name)
  return tool ? JSON.stringify(tool.function.parameters, null, 2) : `there is no tool ${name}`
}
