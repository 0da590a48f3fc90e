import { resolve } from 'node:path'
import { shownPath, systemContext } from '@svc/core'
import type { CommandContext } from '@svc/core/contracts'
import { findServers, fromWire } from '@svc/runtime'
import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { restore as restoreStore } from '../restore.ts'
import type { Held } from '../lasting.ts'
import { serverDown } from '../backup-errors.ts'
import { configuredFile, contentText } from './line.ts'

/** `svc store restore <file>`: servers of this home pause while the file is replaced; the former store stays beside it. */
export class StoreRestore extends SvcCommand {
  static override summary = 'Put a backup in the place of the store; a running server pauses meanwhile'
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

const unsureText = (unsure: readonly Held[]) =>
  `take care: no former store could be read, so what was revoked since the backup holds again: ${unsure
    .map(({ collection, records }) => `${records} records of ${collection}`)
    .join(', ')}. Access tokens: see \`svc tokens list\`, and \`svc tokens revoke <id>\` each that is to be none.`

/** Does the work while the servers of this home have no worker, and so no store open. Throws what came of bringing them back. */
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
    note(`${info.url} has served again since, with new workers`)
  }
  return done
}
