import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Args, Flags, HEADER_FLAG, JSON_FLAG, PORT_FLAG, SvcCommand, visibleLines } from '@svc/cli/command'
import type { CommandContext, ServerChoice, ServerClient } from '@svc/core/contracts'
import { oneLine, table, timeText } from '@svc/plugin-kit'
import { beforeInvalid, conditionMissing, importStopped, notConfirmed, nothingToExport, serverNone } from './errors.ts'

const PATH = '/api/v1/conversations'
const HEAD = ['CONVERSATION', 'UPDATED', 'MESSAGES', 'TITLE', 'LABELS']
const ID_ARG = { id: Args.string({ description: 'Id of a conversation', required: true, ignoreStdin: true }) }
const URL_FLAG = {
  url: Flags.string({ summary: 'Address of the server', helpValue: '<url>', exclusive: ['port'] }),
  ...PORT_FLAG,
  ...HEADER_FLAG,
}
const LABEL_FLAG = { label: Flags.string({ summary: 'Only conversations with this label', helpValue: '<label>' }) }
const PAGE_FLAGS = {
  limit: Flags.integer({ summary: 'Maximum number of conversations', helpValue: '<int>', default: 20, min: 1, max: 200 }),
  cursor: Flags.string({ summary: 'Continue after this page', helpValue: '<cursor>' }),
}
const IMPORTS = ['jsonl', 'chat_completions'] as const
const EXPORTS = [...IMPORTS, 'markdown'] as const

/** A conversation as the API shows it with `detail=full`. */
interface ConversationShown {
  readonly conversation_id: string
  readonly updated_at: string
  readonly message_count: number
  readonly title: string | null
  readonly labels: readonly string[]
}
interface MatchShown {
  readonly message_id: string | null
  readonly text: string
  readonly marks: readonly (readonly [number, number])[]
}
interface Page<T> {
  readonly conversations: readonly T[]
  readonly next_cursor: string | null
}
interface MessageShown {
  readonly id: string
  readonly role: string
  readonly model?: string
  readonly status?: string
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number }
  readonly parts: readonly { readonly type: string; readonly [member: string]: unknown }[]
}

/** The running server. Its API checks the credential of the caller, as for other clients. Throws SERVER_NONE. */
async function serverOf(command: CommandContext, { url, port, header }: ServerChoice): Promise<ServerClient> {
  const server = await command.server({
    ...(url === undefined ? {} : { url }),
    ...(port === undefined ? {} : { port }),
    ...(header === undefined ? {} : { header }),
  })
  if (!server) throw serverNone()
  return server
}

const pathOf = (id: string, more = '') => `${PATH}/${encodeURIComponent(id)}${more}`

/** A path with the parameters that are given. */
function withQuery(path: string, given: { readonly [name: string]: string | number | undefined }): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(given)) if (value !== undefined) query.set(name, String(value))
  return `${path}?${query.toString()}`
}

const cells = ({ conversation_id: id, updated_at: at, message_count: count, title, labels }: ConversationShown) => [
  id,
  timeText(Date.parse(at)),
  String(count),
  oneLine(title ?? '', 60),
  oneLine(labels.join(','), 40),
]

/** `svc conversations list`. */
export class ConversationsList extends SvcCommand {
  static override summary = 'List conversations, newest first'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --label billing --json']
  static override flags = { ...LABEL_FLAG, ...PAGE_FLAGS, ...URL_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(ConversationsList)
    const { label, limit, cursor } = flags
    const server = await serverOf(this, flags)
    const path = withQuery(PATH, { detail: 'full', label, limit, cursor })
    const page = await server.request<Page<ConversationShown>>('GET', path)
    if (flags.json) return this.print(JSON.stringify(page))
    if (page.conversations.length === 0) this.note('no conversations found')
    else for (const line of table([HEAD, ...page.conversations.map(cells)])) this.print(line)
    if (page.next_cursor !== null) this.note(`more conversations exist; continue with --cursor ${page.next_cursor}`)
  }
}

/** `svc conversations search`. */
export class ConversationsSearch extends SvcCommand {
  static override summary = 'Search titles, messages and replies of conversations'
  static override examples = [
    '<%= config.bin %> <%= command.id %> invoice',
    '<%= config.bin %> <%= command.id %> \'"late payment" remind* -draft\'',
  ]
  static override args = {
    query: Args.string({
      description: 'Words, "phrases", begin* and -without',
      required: true,
      ignoreStdin: true,
    }),
  }
  static override flags = { ...LABEL_FLAG, ...PAGE_FLAGS, ...URL_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConversationsSearch)
    const { label, limit, cursor } = flags
    const server = await serverOf(this, flags)
    const path = withQuery(PATH, { q: args.query, label, limit, cursor })
    const page = await server.request<Page<ConversationShown & { matches: readonly MatchShown[] }>>('GET', path)
    if (flags.json) return this.print(JSON.stringify(page))
    if (page.conversations.length === 0) this.note('no conversations found')
    for (const found of page.conversations) {
      this.print(`${found.conversation_id}  ${oneLine(found.title ?? '', 80)}`)
      for (const { message_id: id, text } of found.matches) this.print(`  ${(id ?? 'title').padEnd(8)} ${oneLine(text, 160)}`)
    }
    if (page.next_cursor !== null) this.note(`more matches exist; continue with --cursor ${page.next_cursor}`)
  }
}

/** `svc conversations show`. */
export class ConversationsShow extends SvcCommand {
  static override summary = 'Show the messages of a conversation, with tool calls and tokens'
  static override examples = ['<%= config.bin %> <%= command.id %> <id>']
  static override args = ID_ARG
  static override flags = { ...URL_FLAG, ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConversationsShow)
    const server = await serverOf(this, flags)
    const messages: MessageShown[] = []
    for (let cursor: string | undefined; ; ) {
      const path = withQuery(pathOf(args.id), { detail: 'full', limit: 100, cursor })
      const page = await server.request<ConversationShown & { messages: readonly MessageShown[]; next_cursor: string | null }>(
        'GET',
        path
      )
      if (flags.json) messages.push(...page.messages)
      else {
        if (cursor === undefined && page.title !== null) this.print(`# ${oneLine(page.title, 200)}`)
        for (const message of page.messages) this.#show(message)
      }
      if (page.next_cursor === null) return flags.json ? this.print(JSON.stringify({ ...page, messages })) : undefined
      cursor = page.next_cursor
    }
  }

  #show({ id, role, model, status, usage, parts }: MessageShown) {
    const cost = usage && `${usage.input_tokens}+${usage.output_tokens} tokens`
    this.print(`\n[${id}] ${[role, model, cost, status].filter(Boolean).join(' · ')}`)
    for (const part of parts) this.print(partText(part))
  }
}

function partText(part: MessageShown['parts'][number]): string {
  if (part.type === 'text' || part.type === 'reasoning') return visibleLines(String(part.text))
  if (part.type === 'tool_call') return `→ ${String(part.tool)} ${oneLine(JSON.stringify(part.arguments), 200)}`
  if (part.type === 'tool_result') return `← ${String(part.tool)} ${oneLine(JSON.stringify(part.content), 200)}`
  return `(${part.type})`
}

/** `svc conversations fork`. */
export class ConversationsFork extends SvcCommand {
  static override summary = 'Copy a conversation up to a message'
  static override description =
    'If --at names a message of the user, the copy ends before this message; otherwise the copy ends with the turn of the message. With --message, svc then starts a turn with this text in the copy.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> <id>',
    '<%= config.bin %> <%= command.id %> <id> --at 3-0 --message "In French, please"',
  ]
  static override args = ID_ARG
  static override flags = {
    at: Flags.string({ summary: 'Id of the message, see `svc conversations show`', helpValue: '<message>' }),
    message: Flags.string({ summary: 'Message with which svc starts a turn in the copy', helpValue: '<text>' }),
    title: Flags.string({ summary: 'Title of the copy', helpValue: '<text>' }),
    ...URL_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConversationsFork)
    const { at, message, title } = flags
    const server = await serverOf(this, flags)
    const body = {
      ...(at === undefined ? {} : { message_id: at }),
      ...(message === undefined ? {} : { message }),
      ...(title === undefined ? {} : { title }),
    }
    const copy = await server.request<{ conversation: ConversationShown; text?: string; response?: string }>(
      'POST',
      pathOf(args.id, '/fork'),
      { body }
    )
    if (flags.json) return this.print(JSON.stringify(copy))
    this.print(copy.conversation.conversation_id)
    if (copy.response !== undefined) this.note(visibleLines(copy.response))
  }
}

/** `svc conversations export`. */
export class ConversationsExport extends SvcCommand {
  static override summary = 'Export conversations to standard output or a file'
  static override examples = [
    '<%= config.bin %> <%= command.id %> <id> --format markdown',
    '<%= config.bin %> <%= command.id %> --all --output conversations.jsonl',
  ]
  static override args = { id: Args.string({ description: 'Id of a conversation', ignoreStdin: true }) }
  static override flags = {
    all: Flags.boolean({ summary: 'Export all conversations that you can access', default: false }),
    ...LABEL_FLAG,
    format: Flags.option({ summary: 'Format of the export', options: EXPORTS, default: 'jsonl' as const })(),
    output: Flags.string({ char: 'o', summary: 'File to write; it must not exist', helpValue: '<file>' }),
    ...URL_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConversationsExport)
    if (args.id === undefined && !flags.all && flags.label === undefined) throw nothingToExport()
    const server = await serverOf(this, flags)
    const ids = args.id === undefined ? listed(server, flags.label) : [args.id]
    await using file = flags.output === undefined ? undefined : await open(flags.output, 'wx', 0o600)
    let count = 0
    for await (const id of ids) {
      let line = ''
      for await (const piece of server.text('GET', withQuery(pathOf(id, '/export'), { format: flags.format }))) {
        if (file) await file.write(piece)
        else {
          const lines = (line + piece).split('\n')
          line = lines.pop()!
          for (const whole of lines) this.print(whole)
        }
      }
      if (line !== '') this.print(line)
      count += 1
    }
    if (flags.output !== undefined) this.note(`exported ${count} conversations to ${flags.output}`)
  }
}

async function* listed(server: ServerClient, label: string | undefined): AsyncGenerator<string> {
  for (let cursor: string | undefined; ; ) {
    const page = await server.request<Page<ConversationShown>>('GET', withQuery(PATH, { label, limit: 200, cursor }))
    for (const { conversation_id: id } of page.conversations) yield id
    if (page.next_cursor === null) return
    cursor = page.next_cursor
  }
}

/** Characters of one request; all conversations of a request are imported, or none. */
const CHUNK = 4_000_000

/** `svc conversations import`. */
export class ConversationsImport extends SvcCommand {
  static override summary = 'Import conversations from a file'
  static override description =
    'The conversations get new ids and belong to you. The command sends a large file in parts of several megabytes. svc imports each part as a whole, or not at all.'
  static override examples = ['<%= config.bin %> <%= command.id %> conversations.jsonl --label imported']
  static override args = { file: Args.string({ description: 'File to read', required: true, ignoreStdin: true }) }
  static override flags = {
    format: Flags.option({ summary: 'Format of the file', options: IMPORTS, default: 'jsonl' as const })(),
    label: Flags.string({
      summary: 'Label for all imported conversations. Repeatable',
      helpValue: '<label>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    ...URL_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConversationsImport)
    const { format, label: labels } = flags
    const server = await serverOf(this, flags)
    const made: ConversationShown[] = []
    for await (const { content, before } of chunksOf(args.file, format)) {
      const body = { format, content, ...(labels === undefined ? {} : { labels }) }
      try {
        const { conversations } = await server.request<Page<ConversationShown>>('POST', `${PATH}/import`, { body })
        made.push(...conversations)
      } catch (error) {
        throw made.length === 0 && before === 0 ? error : importStopped(made.length, before, error)
      }
    }
    if (flags.json) return this.print(JSON.stringify({ conversations: made }))
    for (const { conversation_id: id } of made) this.print(id)
    this.note(`imported ${made.length} conversations`)
  }
}

/** The lines of a file in parts that begin with a conversation; `before`: the number of lines before a part. */
async function* chunksOf(
  path: string,
  format: (typeof IMPORTS)[number]
): AsyncGenerator<{ readonly content: string; readonly before: number }> {
  let [lines, size, count]: [string[], number, number] = [[], 0, 0]
  const file = createReadStream(path, 'utf8')
  for await (const line of createInterface({ input: file, crlfDelay: Number.POSITIVE_INFINITY })) {
    const begins = format === 'chat_completions' || line.startsWith('{"type":"conversation"')
    if (begins && size > CHUNK) {
      yield { content: lines.join('\n'), before: count - lines.length }
      ;[lines, size] = [[], 0]
    }
    lines.push(line)
    size += line.length + 1
    count += 1
  }
  yield { content: lines.join('\n'), before: count - lines.length }
}

/** `svc conversations delete`. */
export class ConversationsDelete extends SvcCommand {
  static override summary = 'Delete a conversation, or all conversations that meet conditions'
  static override description =
    'Conditions select among your own conversations. With conditions, a background job deletes them; see `svc jobs`.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> <id>',
    '<%= config.bin %> <%= command.id %> --label trial --before 90d --yes',
  ]
  static override args = { id: Args.string({ description: 'Id of a conversation', ignoreStdin: true }) }
  static override flags = {
    ...LABEL_FLAG,
    before: Flags.string({
      summary: 'Only conversations without a turn since this time, or for this many days',
      helpValue: '<time>|<n>d',
    }),
    query: Flags.string({ char: 'q', summary: 'Only conversations that this search finds', helpValue: '<query>' }),
    owner: Flags.string({
      summary: 'Only conversations of this principal; * for all. Requires the scope admin',
      helpValue: '<id>',
    }),
    yes: Flags.boolean({
      char: 'y',
      summary: 'Confirm the deletion of all conversations that meet the conditions',
      default: false,
    }),
    ...URL_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConversationsDelete)
    const { label, query, owner } = flags
    const before = flags.before === undefined ? undefined : timeOf(flags.before)
    const filter = Object.fromEntries(
      Object.entries({ label, before, q: query, owner }).filter(([, value]) => value !== undefined)
    )
    const hasFilter = Object.keys(filter).length > 0
    if ((args.id === undefined) !== hasFilter) throw conditionMissing()
    if (hasFilter && !flags.yes) throw notConfirmed()
    const server = await serverOf(this, flags)
    if (args.id !== undefined) {
      await server.request('DELETE', pathOf(args.id))
      return flags.json
        ? this.print(JSON.stringify({ conversation_id: args.id, deleted: true }))
        : this.note(`deleted ${args.id}`)
    }
    const { job_id: job } = await server.request<{ job_id: string }>('POST', `${PATH}/delete`, { body: filter })
    if (flags.json) return this.print(JSON.stringify({ job_id: job }))
    this.print(job)
    this.note(`the server deletes them in the background; see svc jobs show ${job}`)
  }
}

const DAY_MS = 86_400_000

function timeOf(given: string): string {
  const days = /^(\d{1,5})d$/.exec(given)?.[1]
  const time = days === undefined ? Date.parse(given) : Date.now() - Number(days) * DAY_MS
  if (Number.isNaN(time)) throw beforeInvalid(given)
  return new Date(time).toISOString()
}

export const COMMANDS = {
  'conversations:list': ConversationsList,
  'conversations:show': ConversationsShow,
  'conversations:search': ConversationsSearch,
  'conversations:fork': ConversationsFork,
  'conversations:export': ConversationsExport,
  'conversations:import': ConversationsImport,
  'conversations:delete': ConversationsDelete,
}
