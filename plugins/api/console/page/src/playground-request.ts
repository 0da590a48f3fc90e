import type { ChatStreamRequest } from '@svc/client'
import { messageOf } from './api.ts'
import { isRecord } from './schema-input.tsx'
import { chat, type SentPart, secondChat } from './turn.ts'
import { createValue } from './value.ts'

/** What a message is sent with. */
type Request = Pick<ChatStreamRequest, 'profile' | 'provider' | 'model' | 'mode' | 'system' | 'response_schema'>

/** The settings of the playground. */
export interface Settings {
  readonly request: Request
  /** The provider and the model of the second chat, while two are compared. */
  readonly second?: Pick<Request, 'provider' | 'model'>
  /** Why nothing can be sent with them. */
  readonly problem?: string | undefined
}

export const settings = createValue<Settings>({ request: {} })

/** Sends a message to the chat, and to the one beside it. */
export function sendToAll(message: string, parts: readonly SentPart[] = []): void {
  const { request, second, problem } = settings.get()
  if (problem !== undefined) return
  const sent = { message, ...(parts.length > 0 ? { parts: [...parts] } : {}) }
  void chat.send({ ...sent, ...request })
  if (!second) return
  const { provider: _provider, model: _model, ...shared } = request
  void secondChat.send({ ...sent, ...shared, ...second })
}

/** A schema that was written: the schema, or why it is none. The server decides about its keywords. */
export function readSchema(text: string): { readonly schema?: Record<string, unknown>; readonly problem?: string } {
  if (text.trim() === '') return {}
  try {
    const schema: unknown = JSON.parse(text)
    return isRecord(schema) ? { schema } : { problem: 'A JSON Schema is an object: { "type": … }' }
  } catch (error) {
    return { problem: `This is not valid JSON: ${messageOf(error)}` }
  }
}

/** What the copied code sends: the last message with the settings. */
function lastRequest() {
  const last = chat.value.get().turns.at(-1)
  return { message: last?.message ?? 'Hello', ...settings.get().request, parts: last?.parts ?? [] }
}

const nameOf = ({ name, type }: SentPart) => name ?? type

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** The last message as a command. The content of files is left out. */
export function curlCode(): string {
  const { parts, ...request } = lastRequest()
  const sent = parts.map(part => ({ ...part, data: `<${nameOf(part)} in Base64>` }))
  return [
    `curl -N ${location.origin}/api/v1/chat/stream`,
    `  -H 'Content-Type: application/json'`,
    `  -H "Authorization: Bearer $SVC_API_KEY"`,
    `  -d ${quoted(JSON.stringify(sent.length > 0 ? { ...request, parts: sent } : request))}`,
  ].join(' \\\n')
}

/** The last message as a program with the typed client. It reads the files of the message from the folder in which it runs. */
export function clientCode(): string {
  const { parts, ...request } = lastRequest()
  const fields = JSON.stringify(request, null, 2).split('\n').slice(1, -1)
  const files = parts.map(part => {
    const { data: _data, ...named } = part
    return `    { ...${JSON.stringify(named)}, data: await readFile(${JSON.stringify(nameOf(part))}, 'base64') },`
  })
  return [
    ...(files.length > 0 ? [`import { readFile } from 'node:fs/promises'`] : []),
    `import { createClient } from '@svc/client'`,
    '',
    `const svc = createClient({ url: ${JSON.stringify(location.origin)}, apiKey: process.env.SVC_API_KEY })`,
    '',
    'const stream = svc.chat.stream({',
    ...(files.length > 0 ? [`${fields.join('\n')},`, '  parts: [', ...files, '  ],'] : fields),
    '})',
    'for await (const event of stream) {',
    `  if (event.type === 'token') process.stdout.write(event.content)`,
    ...(request.response_schema ? [`  if (event.type === 'end') console.log('\\n', event.data)`] : []),
    '}',
    '',
  ].join('\n')
}
