// An environment of your own: a module whose default export is an Environment (envs/environment.ts has its types).
// State is plain data, every function answers at once, and nothing here reads a clock or rolls dice.

const counter = {
  type: 'function',
  function: {
    name: 'count_shelf',
    description: 'Counts the boxes on one shelf.',
    parameters: {
      type: 'object',
      properties: { shelf: { type: 'string' } },
      required: ['shelf'],
      additionalProperties: false,
    },
  },
}

export default {
  // What grade() writes. A field that is missing, unknown or out of range is a contract violation, never a zero.
  contract: {
    name: 'warehouse',
    version: 1,
    fields: { score: { type: 'number', min: 0, max: 1, required: true } },
    scalar: 'score',
    components: [],
  },

  // What is wrong with a task's spec, told when the pack is loaded or the task submitted.
  problems: (spec) =>
    typeof spec.request === 'string' && typeof spec.shelves === 'object'
      ? []
      : [
          {
            rule: 'shape',
            path: '',
            expected: 'request and shelves',
            found: '',
            message: 'a task has a request (text) and shelves (name to number)',
          },
        ],

  describe: (task) => ({ title: task.spec.title ?? task.id, limits: { max_turns: 6 } }),
  reset: (task) => ({ ...task.spec, counted: [], answer: '' }),
  open: (state) => [
    { role: 'system', content: 'You keep a warehouse. Count before you answer.' },
    { role: 'user', content: state.request },
  ],
  tools: () => [counter],

  // A wrong call is answered with an error; only a fault of the environment itself is thrown.
  step(state, call) {
    const { shelf } = call.arguments
    const boxes =
      call.name === 'count_shelf' && Object.hasOwn(state.shelves, shelf)
        ? state.shelves[shelf]
        : null
    if (boxes === null)
      return {
        state,
        observation: { content: `there is no shelf ${shelf}`, is_error: true },
        audit: { shelf },
      }
    return {
      state: { ...state, counted: [...state.counted, shelf] },
      observation: { content: String(boxes), is_error: false },
      audit: { shelf, boxes },
    }
  },

  hear: (state) => state,
  reply: (state, message) => ({ state: { ...state, answer: message }, end: 'final' }),

  grade(state) {
    const total = Object.values(state.shelves).reduce((a, b) => a + b, 0)
    const right = state.answer.match(/\d+/g)?.at(-1) === String(total)
    const looked = new Set(state.counted).size === Object.keys(state.shelves).length
    return {
      status: 'scored',
      rewards: { score: right && looked ? 1 : right ? 0.5 : 0 },
      evidence: { total, counted: state.counted },
    }
  },

  // The state in which a turn is taken, for estimators that compare turns (GiGPO).
  anchor: (state) => [...new Set(state.counted)].sort().join(',') || 'start',
}
