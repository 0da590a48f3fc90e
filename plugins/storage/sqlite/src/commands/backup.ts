import { resolve } from 'node:path'
import { shownPath } from '@svc/core'
import { Args, Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { makeBackup } from '../backup.ts'
import { configuredFile, contentText } from './line.ts'

/** `svc store backup <file>`: everything that was acknowledged before, also while the server runs. */
export class StoreBackup extends SvcCommand {
  static override summary = 'Copy the store to a file, also while the server runs'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./svc-backup.db',
    '<%= config.bin %> <%= command.id %> /mnt/backup/svc.db --force --json',
  ]
  static override args = { file: Args.string({ description: 'File to write', required: true, ignoreStdin: true }) }
  static override flags = { force: Flags.boolean({ summary: 'Replace a file that is there', default: false }), ...JSON_FLAG }

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
