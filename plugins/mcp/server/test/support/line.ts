import { createInterface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { systemContext } from '@svc/core'
import { Pipes } from '@svc/core/contracts'
import type { McpHost } from './host.ts'
import type { Json } from './wire.ts'

/** A client at the other end of a pair of streams, which the SDK alone serves. */
export function line(mcpHost: McpHost, ending = new AbortController()) {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const served = mcpHost.host.slot(Pipes).get('mcp')!.serve(input, output, systemContext(ending.signal))
  const lines = createInterface({ input: output })[Symbol.asyncIterator]()
  const say = (message: Json) => void input.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const hear = async () =>
    JSON.parse((await lines.next()).value as string) as Json & { readonly result?: Json; readonly error?: Json }
  return {
    input,
    output,
    served,
    say,
    hear,
    async ask(method: string, params: Json = {}, id = 1) {
      say({ id, method, params })
      return hear()
    },
  }
}
