import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin, svcError } from '@svc/core'
import { type Tool, Tools, type ToolStep } from '@svc/core/contracts'

const NO_ARGUMENTS = { type: 'object', properties: {}, additionalProperties: false } as const
const said = (text: string): ToolStep => ({ type: 'result', result: { content: [{ type: 'text', text }] } })
const base = { category: 'text', effects: ['read'] as const, parameters: NO_ARGUMENTS }
const only = (description: string, run: NonNullable<Tool['run']>, more: Partial<Tool> = {}): Tool => ({
  ...base,
  description,
  call: () => Promise.reject(new Error('only as a stream')),
  run,
  ...more,
})

/** Tools that report progress, ask, fail and hang. */
export const CALL_TOOLS: Readonly<Record<string, Tool>> = {
  steps: only(
    'Reports its progress.',
    async function* (args) {
      for (let at = 1; at <= 3; at++) {
        yield { type: 'progress', progress: at, total: 3, message: `step ${at}` }
        await sleep(Number(args.pause_ms ?? 0))
      }
      yield { type: 'result', result: { content: [{ type: 'text', text: 'done' }], structured: { steps: 3 } } }
    },
    {
      parameters: {
        type: 'object',
        properties: {
          pause_ms: { type: 'integer', minimum: 0, maximum: 1_000, default: 0 },
          deep: { type: 'array', items: { type: 'object', properties: { kind: { enum: ['a', 'b'] } }, required: ['kind'] } },
        },
        additionalProperties: false,
      },
      result: { type: 'object', properties: { steps: { type: 'integer' } } },
      title: 'Steps',
    }
  ),
  form: only('Asks for a name.', async function* (_args, { answers, can }) {
    if (!can.includes('elicitation/create')) return yield said('nobody can answer')
    const { action, content } = (answers?.who ?? {}) as { action?: string; content?: { name?: string } }
    if (action === 'accept') return yield said(`hello ${content?.name}`)
    if (action !== undefined) return yield said(`the user said ${action}`)
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
    const params = { mode: 'form', message: 'Who are you?', requestedSchema }
    yield { type: 'input', requests: { who: { method: 'elicitation/create', params } }, state: 'asked' }
  }),
  insatiable: only('Asks for ever.', async function* () {
    yield { type: 'input', requests: { more: { method: 'elicitation/create', params: { message: 'More?' } } } }
  }),
  consent: {
    ...base,
    description: 'Needs approval.',
    asks: true,
    call: async () => ({ content: [{ type: 'text', text: `pid ${process.pid}` }] }),
  },
  fails: {
    ...base,
    description: 'Reports a failure.',
    call: async () => ({ content: [{ type: 'text', text: 'no luck' }], isError: true }),
  },
  throws: {
    ...base,
    description: 'Throws an error that pretends to be one of the server.',
    call: () => Promise.reject(svcError('FORBIDDEN', 'broken inside', { details: { home: '/home/secret' } })),
  },
  hangs: { ...base, description: 'Ignores its signal.', timeoutMs: 300, call: () => new Promise(() => {}) },
  writes: {
    ...base,
    description: 'Writes.',
    effects: ['write'],
    call: async () => ({ content: [{ type: 'text', text: 'written' }] }),
  },
  turns_only: { ...base, description: 'Only in turns.', modes: ['build'], call: async () => ({ content: [] }) },
}

export default definePlugin({
  setup(scope) {
    for (const [name, tool] of Object.entries(CALL_TOOLS)) scope.add(Tools, name, tool)
  },
})
