import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class Build extends BaseCommand {
  static override summary = 'Write a folder with svc and exactly the configured plugins'
  static override description =
    'Writes a folder that holds svc, exactly the configured and installed plugins, and a Containerfile. `npm start` in that folder starts the server. The folder needs Node.js 24 and no network. Two builds of the same input are identical byte for byte. A build contains no environment variables.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./out',
    '<%= config.bin %> <%= command.id %> ./out --config ./staging.yaml --json',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder to write, new or empty', required: true, ignoreStdin: true }),
  }
  static override flags = {
    config: Flags.string({ char: 'c', summary: 'Configuration file', helpValue: '<file>' }),
    json: Flags.boolean({ summary: 'Print one JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Build)
    const { buildFolder } = await import('./build/build.ts')
    return buildFolder({ folder: args.folder, ...flags })
  }
}
