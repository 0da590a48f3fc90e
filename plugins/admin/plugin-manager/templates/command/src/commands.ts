import { Args, Flags, SvcCommand } from '@svc/cli/command'

/** `svc sample-word <text>...`. `run` resolves with the exit code; undefined means 0. */
export class SampleWord extends SvcCommand {
  static override summary = 'Count words'
  static override examples = ['<%= config.bin %> <%= command.id %> one two']
  static override args = {
    text: Args.string({ description: 'Text to count', required: true, multiple: true, ignoreStdin: true }),
  }
  static override flags = { each: Flags.boolean({ summary: 'Count the words of each text' }) }

  async run() {
    const { args, flags } = await this.parse(SampleWord)
    const counts = args.text.map(text => text.split(/\s+/).filter(word => word !== '').length)
    const shown = flags.each ? counts : [counts.reduce((sum, count) => sum + count, 0)]
    for (const count of shown) this.print(`${count} ${count === 1 ? 'word' : 'words'}`)
  }
}

export const COMMANDS = { 'sample-word': SampleWord }
