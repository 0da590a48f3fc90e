import { Args, Flags, SvcCommand } from '@svc/cli/command'
import { countWords } from './count.js'

class Words extends SvcCommand {
  static summary = 'Count words'
  static examples = ['<%= config.bin %> <%= command.id %> one two']
  static args = { text: Args.string({ description: 'Text to count', required: true, multiple: true, ignoreStdin: true }) }
  static flags = { longest: Flags.boolean({ summary: 'Show the longest word too' }) }

  async run() {
    const { args, flags } = await this.parse(Words)
    const text = args.text.join(' ')
    this.print(String(countWords(text)))
    if (flags.longest)
      this.print(text.split(/\s+/).reduce((longest, word) => (word.length > longest.length ? word : longest), ''))
  }
}

export const COMMANDS = { words: Words }
