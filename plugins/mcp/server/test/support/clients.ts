import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'

/** What a client's person answers to a form. */
interface Answer {
  readonly action: 'accept' | 'decline' | 'cancel'
  readonly content?: Record<string, string | boolean>
}

interface Call {
  readonly name: string
  readonly arguments: Record<string, unknown>
  readonly [key: string]: unknown
}
type OnProgress = (progress: { readonly progress: number }) => void

const INFO = { name: 'test', version: '1.0.0' }
const PERSON = { elicitation: { form: {} } }

/** The SDK's client of today, in either era; `answer` is a person's. */
async function newClient(url: string, era: 'modern' | 'legacy', answer?: (message: string) => Answer) {
  const mode = era === 'modern' ? { pin: '2026-07-28' } : 'legacy'
  const client = new Client(INFO, { capabilities: answer ? PERSON : {}, versionNegotiation: { mode } })
  if (answer) client.setRequestHandler('elicitation/create', ({ params }) => ({ ...answer(params.message) }))
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`))
  await client.connect(transport)
  const follow = (params: Call, onprogress: OnProgress) => client.callTool(params, { onprogress })
  return { client, follow, [Symbol.asyncDispose]: () => client.close() }
}

/** The SDK's client of before: sessions only. */
async function oldClient(url: string, answer?: (message: string) => Answer) {
  const client = new OldClient(INFO, { capabilities: answer ? PERSON : {} })
  if (answer) client.setRequestHandler(ElicitRequestSchema, ({ params }) => ({ ...answer(params.message) }))
  const transport = new OldTransport(new URL(`${url}/mcp`))
  await client.connect(transport)
  const follow = (params: Call, onprogress: OnProgress) => client.callTool(params, undefined, { onprogress })
  return { client, follow, [Symbol.asyncDispose]: () => client.close() }
}

type Connect = (url: string, answer?: (message: string) => Answer) => ReturnType<typeof newClient> | ReturnType<typeof oldClient>

/** All who have to get on with the server. */
export const CLIENTS: Readonly<Record<string, Connect>> = {
  'the SDK of today, stateless': (url, answer) => newClient(url, 'modern', answer),
  'the SDK of today, with a session': (url, answer) => newClient(url, 'legacy', answer),
  'the SDK of before': oldClient,
}
