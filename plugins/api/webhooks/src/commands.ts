import { Args, Flags, JSON_FLAG, PORT_FLAG, SvcCommand } from '@svc/cli/command'
import type { CommandContext, ServerChoice, ServerClient } from '@svc/core/contracts'
import { oneLine, table } from '@svc/plugin-kit'
import { serverNone } from './errors.ts'

const PATH = '/api/v1/webhooks'
const HEAD = ['WEBHOOK', 'NAME', 'URL', 'EVENTS', '']
const ID_ARG = { id: Args.string({ description: 'Id of a webhook', required: true, ignoreStdin: true }) }
const FLAGS = {
  url: Flags.string({ summary: 'Address of the server', helpValue: '<url>', exclusive: ['port'] }),
  ...PORT_FLAG,
  ...JSON_FLAG,
}

/** A webhook as the API shows it. */
interface WebhookShown {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly types: readonly string[]
  readonly enabled: boolean
  readonly disabled_reason: string | null
}

/** The running server. Its API checks the credential of the caller, as for other clients. Throws SERVER_NONE. */
async function serverOf(command: CommandContext, { url, port }: ServerChoice): Promise<ServerClient> {
  const server = await command.server({ ...(url === undefined ? {} : { url }), ...(port === undefined ? {} : { port }) })
  if (!server) throw serverNone()
  return server
}

const pathOf = (id: string, more = '') => `${PATH}/${encodeURIComponent(id)}${more}`

/** `svc webhooks add`. */
export class WebhooksAdd extends SvcCommand {
  static override summary = 'Send events of the server to a URL'
  static override description =
    'The command shows the secret, which verifies deliveries, only once. The server needs a key for secrets, see `svc secrets`.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> https://example.com/hook',
    '<%= config.bin %> <%= command.id %> https://example.com/hook --event "run_*" --event turn_failed',
  ]
  static override args = { receiver: Args.string({ description: 'URL of the receiver', required: true, ignoreStdin: true }) }
  static override flags = {
    name: Flags.string({ summary: 'Name shown in lists', helpValue: '<name>' }),
    event: Flags.string({
      summary: 'Type of events, such as run_ended or "turn_*". Repeatable (default: all)',
      helpValue: '<type>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    ...FLAGS,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WebhooksAdd)
    const { name, event: types } = flags
    const body = { url: args.receiver, ...(name === undefined ? {} : { name }), ...(types === undefined ? {} : { types }) }
    const server = await serverOf(this, flags)
    const added = await server.request<{ webhook: WebhookShown; secret: string }>('POST', PATH, { body })
    if (flags.json) return this.print(JSON.stringify(added))
    this.print(added.secret)
    this.note(`added ${added.webhook.id}. The secret is shown only once.`)
  }
}

/** `svc webhooks list`. */
export class WebhooksList extends SvcCommand {
  static override summary = 'List the webhooks of the server'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = FLAGS

  async run(): Promise<void> {
    const { flags } = await this.parse(WebhooksList)
    const server = await serverOf(this, flags)
    const { webhooks } = await server.request<{ webhooks: readonly WebhookShown[] }>('GET', PATH)
    if (flags.json) return this.print(JSON.stringify({ webhooks }))
    if (webhooks.length === 0) return this.note('there are no webhooks; add one: svc webhooks add <url>')
    for (const line of table([HEAD, ...webhooks.map(cells)])) this.print(line)
  }
}

function cells({ id, name, url, types, enabled, disabled_reason: reason }: WebhookShown): string[] {
  const state = enabled ? '' : `disabled${reason === null ? '' : `: ${oneLine(reason, 60)}`}`
  return [id, oneLine(name, 30), oneLine(url, 60), types.length === 0 ? 'all' : oneLine(types.join(','), 40), state]
}

interface TestAnswer {
  readonly delivered: boolean
  readonly status: number | null
  readonly duration_ms: number
  readonly error: string | null
}

/** `svc webhooks test`: exits with 1 if the receiver does not take the event. */
export class WebhooksTest extends SvcCommand {
  static override summary = 'Send a test event to a webhook'
  static override examples = ['<%= config.bin %> <%= command.id %> <id>']
  static override args = ID_ARG
  static override flags = FLAGS

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WebhooksTest)
    const server = await serverOf(this, flags)
    const result = await server.request<TestAnswer>('POST', pathOf(args.id, '/test'))
    if (flags.json) this.print(JSON.stringify(result))
    else if (result.delivered) this.note(`delivered; the receiver answered ${result.status} after ${result.duration_ms} ms`)
    else this.note(`not delivered: ${oneLine(result.error ?? '', 300)}`)
    if (!result.delivered) process.exitCode = 1
  }
}

/** `svc webhooks remove`. */
export class WebhooksRemove extends SvcCommand {
  static override summary = 'Remove a webhook'
  static override examples = ['<%= config.bin %> <%= command.id %> <id>']
  static override args = ID_ARG
  static override flags = FLAGS

  async run(): Promise<void> {
    const { args, flags } = await this.parse(WebhooksRemove)
    const server = await serverOf(this, flags)
    await server.request('DELETE', pathOf(args.id))
    if (flags.json) return this.print(JSON.stringify({ id: args.id, removed: true }))
    this.note(`removed ${args.id}`)
  }
}

export const COMMANDS = {
  'webhooks:add': WebhooksAdd,
  'webhooks:list': WebhooksList,
  'webhooks:test': WebhooksTest,
  'webhooks:remove': WebhooksRemove,
}
