import type { ToolCall, ToolVerdict } from '@svc/core/contracts'

/** Called before a tool runs. `undefined`: svc asks the next tap. An error denies the call. */
//js: /** @type {(call: import('@svc/core/contracts').ToolCall) => import('@svc/core/contracts').ToolVerdict | undefined} */
export const sampleWord = (call: ToolCall): ToolVerdict | undefined =>
  call.effects.includes('write') ? { verdict: 'ask', question: `Let ${call.tool} write?` } : undefined
