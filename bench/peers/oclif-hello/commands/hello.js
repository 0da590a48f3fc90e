import { Args, Command, Flags } from '@oclif/core'

export default class Hello extends Command {
  static args = { person: Args.string({ description: 'Person to say hello to', required: true }) }
  static description = 'Say hello'
  static examples = ['<%= config.bin %> <%= command.id %> friend --from oclif']
  static flags = { from: Flags.string({ char: 'f', description: 'Who is saying hello', required: true }) }

  async run() {
    const { args, flags } = await this.parse(Hello)
    this.log(`hello ${args.person} from ${flags.from}!`)
  }
}
