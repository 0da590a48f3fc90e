// A plugin for the tests: a provider that answers with the events that the message contains, and tools.
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { definePlugin, svcError } from '@svc/core'
import { type ModelEvent, type ModelRequest, Providers, type Tool, Tools } from '@svc/core/contracts'

/** A message that scripts the model: the events of each step. After the last step, the model repeats it. */
export const script = (...steps: readonly (readonly (ModelEvent | { readonly type: 'fail'; readonly kind: string })[])[]) =>
  `SCRIPT ${JSON.stringify(steps)}`

let calls = 0
/** A call of a tool as an event of the model. */
export const callOf = (tool: string, args: Record<string, string> = {}): ModelEvent => ({
  type: 'tool_call',
  id: `scripted_${++calls}`,
  tool,
  arguments: args,
})
export const TEXT: ModelEvent = { type: 'text', text: 'said' }
export const finish = (reason: 'stop' | 'length' | 'tool_calls' | 'content_filter' = 'stop'): ModelEvent => ({
  type: 'finish',
  reason,
})

type Step = (ModelEvent | { readonly type: 'fail'; readonly kind: string })[]

function stepOf({ messages }: ModelRequest): Step {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const text = messages[last]!.parts.map(part => (part.type === 'text' ? part.text : '')).join('')
  if (!text.startsWith('SCRIPT ')) return [{ type: 'text', text: `heard: ${text}` }, finish()]
  const steps = JSON.parse(text.slice('SCRIPT '.length)) as Step[]
  const done = messages.slice(last).filter(({ role }) => role === 'assistant').length
  return steps[Math.min(done, steps.length - 1)]!
}

const tool = (call: Tool['call'], more: Partial<Tool> = {}): Tool => ({
  description: 'For tests',
  category: 'text',
  effects: ['read'],
  parameters: { type: 'object', properties: { name: { type: 'string' } } },
  call,
  ...more,
})
const said = (text: string) => ({ content: [{ type: 'text' as const, text }] })
const here = (name: unknown) => join(process.cwd(), String(name))

const TOOLS: Readonly<Record<string, Tool>> = {
  launch: tool(async () => said('launched'), { asks: true, effects: ['write'] }),
  land: tool(async () => said('landed'), { asks: true }),
  touch_file: tool(
    async ({ name }) => {
      writeFileSync(here(name), 'touched')
      return said('touched')
    },
    { effects: ['write'] }
  ),
  /** Waits for a file in the folder of the process. */
  wait_for: tool(async ({ name }, { signal }) => {
    while (!existsSync(here(name))) await sleep(20, undefined, { signal })
    return said('there')
  }),
  /** Neither ends nor listens to an abort. */
  stubborn: tool(async ({ name }) => {
    writeFileSync(here(name), '')
    for (;;) await sleep(1_000, undefined, { ref: false })
  }),
  facts: tool(async () => ({ ...said('two facts'), structured: { a: 1, b: [true] } })),
}

export default definePlugin({
  setup(scope) {
    for (const [name, item] of Object.entries(TOOLS)) scope.add(Tools, name, item)
    scope.add(Providers, 'scripted', {
      features: { tool_calling: true, streaming: true, vision: false },
      models: async () => ({ models: [{ id: 'one' }, { id: 'two' }], open: false }),
      countTokens: async () => 1,
      probe: async () => {},
      async *chat(request) {
        for (const event of stepOf(request)) {
          if (event.type === 'fail')
            throw svcError('MODEL_FAILED', 'as the script says', { details: { kind: event.kind, retryable: false } })
          yield event
        }
      },
    })
  },
})
