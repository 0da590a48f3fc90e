import { Command } from '@oclif/core'
import type { Contributed } from '../contributed.ts'

/** The command of a plugin, for oclif: its module is imported when it runs. */
export function contributed(found: Contributed, config: string | undefined): Command.Class {
  return class extends Command {
    static override summary = found.summary
    static override description = `${found.description === undefined ? '' : `${found.description} `}Comes with ${found.plugin}.`
    static override examples = (found.examples ?? ['<%= command.id %>']).map(line => `<%= config.bin %> ${line}`)
    static override usage = `<%= command.id %> ${found.usage ?? '[ARGUMENTS]'}`
    static override strict = false

    async run(): Promise<void> {
      const { runContributed } = await import('../run-contributed.ts')
      process.exitCode = await runContributed(found, this.argv, config)
    }
  }
}
