import { Args, Flags, HEADER_FLAG, JSON_FLAG, PORT_FLAG, SERVER_FLAGS, SvcCommand, visibleLines } from '@svc/cli/command'
import { codeOf, shownPath } from '@svc/core'
import type { ServerClient } from '@svc/core/contracts'
import { lineInvalid } from '@svc/plugin-kit'
import { type Client, type ClientName, CLIENTS, type Connection } from './clients.ts'
import { fragment, planFile, writeFile } from './config-file.ts'
import { endpointMissing, serverNone } from './errors.ts'
import { chooseModel } from './served-models.ts'

const USAGE = 'connect <client> [--model <id>] [--key-env <name>] [--write]'
const NAMES = Object.keys(CLIENTS) as ClientName[]

/** A file of the client, for JSON. */
interface FileFacts {
  readonly path: string
  readonly text: string
  readonly written?: boolean
  readonly backup?: string
}

/** `svc connect <client>`: shows or writes the configuration of a coding agent for a server. */
export class Connect extends SvcCommand {
  static override summary = 'Configure a coding agent for the models of a server'
  static override description =
    'Shows the settings of the client. With --write, adds the settings to the files of the client and keeps all other settings. Copies each file before it changes it. The settings name the environment variable of the key, and never contain the key.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> codex',
    '<%= config.bin %> <%= command.id %> claude-code --model profile:coder --write',
    '<%= config.bin %> <%= command.id %> opencode --url https://svc.example --key-env WORK_KEY --write',
  ]
  static override args = {
    client: Args.string({ description: 'Client to configure', options: NAMES, required: true, ignoreStdin: true }),
  }
  static override flags = {
    model: Flags.string({ summary: 'Model, alias or agent (default: the default model of the server)', helpValue: '<id>' }),
    'key-env': Flags.string({
      summary: 'Variable with the key that the client sends',
      helpValue: '<name>',
      default: 'SVC_API_KEY',
    }),
    write: Flags.boolean({ summary: "Write the client's files", default: false }),
    url: SERVER_FLAGS.url,
    ...PORT_FLAG,
    ...HEADER_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Connect)
    const keyEnv = flags['key-env']
    if (!/^[A-Za-z_]\w{0,127}$/.test(keyEnv)) throw lineInvalid('--key-env must be the name of a variable', USAGE)
    const name = args.client as ClientName
    const client: Client = CLIENTS[name]
    const server = await this.server({ url: flags.url, port: flags.port, header: flags.header })
    if (!server) throw serverNone()
    await requireEndpoint(server, client)
    const model = await chooseModel(server, flags.model)
    if (!model.isListed) this.note(`the server accepts the model ${visibleLines(model.id)}, but does not list it`)
    const connection = { url: server.url.replace(/\/+$/, ''), model, keyEnv }
    const files = flags.write ? await writeFiles(client, name, connection) : await showFiles(client, connection)
    const variables = variablesOf(client, connection)
    if (flags.json)
      return this.print(JSON.stringify({ client: name, url: connection.url, model: model.id, key_env: keyEnv, files, variables }))
    for (const file of files) this.#showFile(file)
    this.#showShell(variables, keyEnv)
    if (client.note !== undefined) this.note(`${client.title}: ${client.note}`)
  }

  #showFile({ path, text, written, backup }: FileFacts): void {
    if (written === undefined) return this.print(visibleLines(`# ${shownPath(path)}\n${text}`))
    if (!written) return this.note(`${shownPath(path)} has these settings already`)
    this.note(`wrote ${shownPath(path)}${backup === undefined ? '' : `; the old file is ${shownPath(backup)}`}`)
  }

  #showShell(variables: Readonly<Record<string, string>>, keyEnv: string): void {
    const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${value}`)
    if (lines.length > 0) this.print(['# shell', ...lines].join('\n'))
    if (!process.env[keyEnv])
      this.note(`set ${keyEnv} to an API key or a token of this server; without authentication, to any text`)
  }
}

/** The client would report a missing path in words of its own. A path for POST answers GET with 405. */
async function requireEndpoint(server: ServerClient, { path, title }: Client): Promise<void> {
  try {
    await server.request('GET', path)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'HTTP_404' || code === 'NOT_FOUND') throw endpointMissing(path, title, server.url)
    if (code !== 'HTTP_405' && code !== 'METHOD_NOT_ALLOWED') throw error
  }
}

const showFiles = (client: Client, connection: Connection): Promise<FileFacts[]> =>
  Promise.all(
    client.files(connection, process.env).map(async file => ({ path: file.path, text: (await fragment(file)).trimEnd() }))
  )

/** Writes nothing if one of the files has a problem. */
async function writeFiles(client: Client, name: ClientName, connection: Connection): Promise<FileFacts[]> {
  const planned = await Promise.all(client.files(connection, process.env).map(file => planFile(file, name)))
  const files: FileFacts[] = []
  for (const plan of planned) {
    const written = plan.after !== (plan.before ?? '')
    const backup = written ? await writeFile(plan) : undefined
    files.push({ path: plan.path, text: plan.after, written, ...(backup === undefined ? {} : { backup }) })
  }
  return files
}

const variablesOf = (client: Client, connection: Connection) => client.variables?.(connection) ?? {}

export const COMMANDS = { connect: Connect }
