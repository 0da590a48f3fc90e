import { messageRecord } from '@svc/api-types'
import type {
  ConversationSummary,
  ExportFormat,
  MessageDetail,
  MessagePart,
  ToolResultPart,
  TurnDetail,
} from '@svc/core/contracts'

// `jsonl` has a line for the conversation and one for each turn; `chat_completions` has one line with all messages, as in a chat
// completion; `markdown` is for people.

/** Version of the format `jsonl`. */
export const VERSION = 1

/** Yields an export piece by piece. */
export async function* exported(
  format: ExportFormat,
  conversation: ConversationSummary,
  turns: AsyncIterable<TurnDetail>
): AsyncGenerator<string> {
  yield* EXPORTS[format](conversation, turns)
}

type Exporter = (conversation: ConversationSummary, turns: AsyncIterable<TurnDetail>) => AsyncGenerator<string>

const EXPORTS: Readonly<Record<ExportFormat, Exporter>> = {
  async *jsonl({ id, title, labels = [], createdAt, updatedAt }, turns) {
    const times = { created_at: createdAt, updated_at: updatedAt }
    yield `${JSON.stringify({ type: 'conversation', version: VERSION, conversation_id: id, title, labels, ...times })}\n`
    for await (const { number, at, messages } of turns) {
      yield `${JSON.stringify({ type: 'turn', number, at, messages: messages.map(messageRecord) })}\n`
    }
  },
  async *chat_completions(_conversation, turns) {
    let begin = '{"messages":['
    for await (const { messages } of turns)
      for (const message of messages.flatMap(completionMessages)) {
        yield `${begin}${JSON.stringify(message)}`
        begin = ','
      }
    yield begin === ',' ? ']}\n' : `${begin}]}\n`
  },
  async *markdown({ title, id, createdAt, labels = [] }, turns) {
    yield `# ${title ?? id}\n\n${[createdAt, ...labels.map(label => `\`${label}\``)].join(' · ')}\n`
    for await (const { messages } of turns) for (const message of messages) yield markdownOf(message).replaceAll(CONTROLS, '')
  },
}

const textOfParts = (parts: readonly MessagePart[]) => parts.map(part => (part.type === 'text' ? part.text : '')).join('')
const resultText = ({ content }: ToolResultPart) =>
  content.map(part => (part.type === 'text' ? part.text : JSON.stringify(part))).join('\n')

function completionMessages({ role, parts }: MessageDetail): object[] {
  if (role === 'tool')
    return parts
      .filter(part => part.type === 'tool_result')
      .map(part => ({ role, tool_call_id: part.id, content: resultText(part) }))
  if (role === 'user') {
    const isText = parts.every(part => part.type === 'text')
    return [{ role, content: isText ? textOfParts(parts) : parts.map(completionPart) }]
  }
  const calls = parts
    .filter(part => part.type === 'tool_call')
    .map(({ id, tool, arguments: args, invalid }) => ({
      id,
      type: 'function',
      function: { name: tool, arguments: invalid ?? JSON.stringify(args) },
    }))
  return [{ role, content: textOfParts(parts), ...(calls.length === 0 ? {} : { tool_calls: calls }) }]
}

function completionPart(part: MessagePart): object {
  if (part.type === 'image') return { type: 'image_url', image_url: { url: `data:${part.mimeType};base64,${part.data}` } }
  if (part.type === 'image_url') return { type: 'image_url', image_url: { url: part.url } }
  if (part.type === 'file')
    return { type: 'file', file: { filename: part.name ?? 'file', file_data: `data:${part.mimeType};base64,${part.data}` } }
  if (part.type === 'audio')
    return { type: 'input_audio', input_audio: { data: part.data, format: part.mimeType.split('/').at(-1) } }
  return { type: 'text', text: part.type === 'text' ? part.text : '' }
}

/** A terminal can show the export. */
const CONTROLS = /[^\P{Cc}\n\r\t]/gu
const HEADINGS = { user: 'User', assistant: 'Assistant', tool: 'Tool', system: 'System' } as const

function markdownOf({ role, model, status, parts }: MessageDetail): string {
  const notes = [model, status].filter(note => note !== undefined)
  const heading = `## ${HEADINGS[role]}${notes.length === 0 ? '' : ` (${notes.join(', ')})`}`
  return `\n${[heading, ...parts.map(markdownPart).filter(text => text !== '')].join('\n\n')}\n`
}

function markdownPart(part: MessagePart): string {
  if (part.type === 'text') return part.text
  if (part.type === 'tool_call') return `Calls \`${part.tool}\`:\n\n${fenced(JSON.stringify(part.arguments, null, 2), 'json')}`
  if (part.type === 'tool_result')
    return `${part.isError ? 'Error' : 'Result'} of \`${part.tool}\`:\n\n${fenced(resultText(part))}`
  if (part.type === 'image_url') return `(image: <${part.url.replaceAll(/[<>\s]/g, '')}>)`
  return part.type === 'reasoning' ? '' : `(${part.type}: ${part.mimeType})`
}

/** A fence that is longer than any in the text. */
function fenced(text: string, language = ''): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
