import { spawn } from 'node:child_process'
import { Flags, JSON_FLAG, PORT_FLAG, SERVER_FLAGS, SvcCommand } from '@svc/cli/command'
import { svcError, systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { sharedStore } from '@svc/plugin-kit'
import { makeCode } from './session.ts'

/** Programs that open an address in the browser of the person. */
const OPENERS: Readonly<Record<string, string>> = { darwin: 'open', linux: 'xdg-open' }

/** `svc console`: prints the address of the console with a one-time code. */
export class Console extends SvcCommand {
  static override summary = 'Open the console of the server on this machine, signed in'
  static override description =
    'Prints an address with a one-time code. The code is valid for 30 seconds, and signs in with all scopes for 12 hours.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --open']
  static override flags = {
    open: Flags.boolean({ summary: 'Open the address in the browser', default: false }),
    url: SERVER_FLAGS.url,
    ...PORT_FLAG,
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(Console)
    const server = await this.server({ url: flags.url, port: flags.port, header: undefined })
    if (!server) throw serverNone()
    const ctx = systemContext(this.signal, 'svc console')
    const store = await sharedStore(await this.host({ only: [Store.name] }), 'no server would accept the code', ctx)
    const { code, expires } = await makeCode(store, ctx)
    const url = `${server.url.replace(/\/+$/, '')}/console#code=${code}`
    if (flags.open) openInBrowser(url)
    if (flags.json) return this.print(JSON.stringify({ url, expires: new Date(expires).toISOString() }))
    this.print(url)
    this.note('The code in this address is valid once, for 30 seconds.')
  }
}

/** The printed address remains if there is no browser. */
function openInBrowser(url: string): void {
  const child = spawn(OPENERS[process.platform] ?? 'xdg-open', [url], { stdio: 'ignore', detached: true })
  child.on('error', () => {})
  child.unref()
}

const serverNone = () =>
  svcError('SERVER_NONE', 'no server runs on this machine', { hint: 'Start one with `svc serve`, or name it with --url' })

export const COMMANDS = { console: Console }
