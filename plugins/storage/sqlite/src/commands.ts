import { resolve } from 'node:path'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { shownPath, systemContext } from '@svc/core'
import type { CommandContext } from '@svc/core/contracts'
import { findServers, fromWire } from '@svc/runtime'
import { serverDown } from './errors.ts'
import { makeBackup } from './backup.ts'
import type { Findings } from './inspect.ts'
import { type CollectionCount, restore as restoreStore } from './restore.ts'
import { fileOf } from './config.ts'

/** The path of the store in the configuration of this command. */
export async function configuredFile({ setting }: CommandContext): Promise<string> {
  const path = await setting('store', 'path')
  return fileOf(typeof path === 'string' && path !== '' ? { path } : {})
}

/** Describes the contents of a file. */
export function contentText({ spaces, records, entries }: Findings, bytes: number): string {
  const size = bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
  return `${size}, ${records} records and ${entries} log entries of ${spaces.length} spaces`
}

/** `svc store backup <file>`: copies all acknowledged writes, even while a server runs. */
export class StoreBackup extends SvcCommand {
  static override summary = 'Copy the store to a file, also while the server runs'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./svc-backup.db',
    '<%= config.bin %> <%= command.id %> /mnt/backup/svc.db --force --json',
  ]
  static override args = { file: Args.string({ description: 'File to write', required: true, ignoreStdin: true }) }
  static override flags = { force: Flags.boolean({ summary: 'Replace an existing file', default: false }), ...JSON_FLAG }

  async run(): Promise<void> {
    const { args, flags } = await this.parse(StoreBackup)
    const file = resolve(args.file)
    const store = await configuredFile(this)
    const { bytes, findings } = await makeBackup(store, file, { force: flags.force, signal: this.signal })
    const { spaces, records, entries } = findings
    if (flags.json) return this.print(JSON.stringify({ file, store, bytes, records, entries, spaces }))
    this.print(`${shownPath(file)}: ${contentText(findings, bytes)}, checked`)
  }
}

/** `svc store restore <file>`: pauses the servers of this home while it replaces the file; keeps the former store beside it. */
export class StoreRestore extends SvcCommand {
  static override summary = 'Replace the store with a backup; a running server pauses meanwhile'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./svc-backup.db',
    '<%= config.bin %> <%= command.id %> ./svc-backup.db --json',
  ]
  static override args = { file: Args.string({ description: 'The backup', required: true, ignoreStdin: true }) }
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(StoreRestore)
    const file = resolve(args.file)
    const store = await configuredFile(this)
    const { kept, bytes, findings, unsure } = await restoreStore(file, store, this.signal, work => withPaused(this, work))
    const { spaces, records, entries } = findings
    if (unsure.length > 0) this.note(unsureText(unsure))
    if (flags.json)
      return this.print(JSON.stringify({ file, store, kept: kept ?? null, bytes, records, entries, spaces, unsure }))
    this.print(`${shownPath(store)} is restored: ${contentText(findings, bytes)}`)
    if (kept !== undefined) this.note(`the former store is ${shownPath(kept)}`)
  }
}

const unsureText = (unsure: readonly CollectionCount[]) =>
  `take care: no former store could be read, so what was revoked since the backup holds again: ${unsure
    .map(({ collection, records }) => `${records} records of ${collection}`)
    .join(', ')}. Access tokens: see \`svc tokens list\`, and \`svc tokens revoke <id>\` each that is to be none.`

/** Does the work while the servers of this home have no workers that use the store. Throws if a server cannot resume. */
async function withPaused<T>({ home, signal, note }: CommandContext, work: () => T): Promise<T> {
  const ctx = systemContext(signal, 'svc store restore')
  using stack = new DisposableStack()
  const servers = (await findServers(home)).map(server => stack.use(server))
  const pauses = servers.map(({ control }) => control.pause(ctx)[Symbol.asyncIterator]())
  await Promise.all(pauses.map(pause => pause.next()))
  const done = work()
  for (const { control, info } of servers) {
    const { problems } = await control.resume(ctx)
    if (problems.length > 0) throw serverDown(info, problems.map(fromWire))
    note(`${info.url} serves again, with new workers`)
  }
  return done
}

export const COMMANDS = { 'store:backup': StoreBackup, 'store:restore': StoreRestore }
