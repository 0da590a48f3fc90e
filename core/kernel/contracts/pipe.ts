import type { Readable, Writable } from 'node:stream'
import { defineSlot, type CallContext } from '@svc/core'

/** A conversation over two byte streams, in process only: standard input and output. It ends with the input, or with the signal. */
export interface Pipe {
  serve(input: Readable, output: Writable, ctx: CallContext): Promise<void>
}
/** Conversations by the name of what is spoken. */
export const Pipes = defineSlot<Pipe>('pipes', { api: 1, methods: { serve: 'call' }, local: true })
