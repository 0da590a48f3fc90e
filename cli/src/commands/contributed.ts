import { Command } from '@oclif/core'
import type { Contributed } from '../contributed.ts'

/** The command of a plugin, for oclif: its module is imported when it runs. */
export function contributed(found: Contributed): Command.Class {
  return class extends Command {
    static override summary = found.summary
    static override description = `Comes with ${found.plugin}.`
    static override examples = ['<%= config.bin %> <%= command.id %>']
    static override usage = '<%= command.id %> [ARGUMENTS]'
    static override strict = false

    async run(): Promise<void> {
      const { runContributed } = await import('../run-contributed.ts')
      process.exitCode = await runContributed(found, this.argv)
    }
  }
}
