import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class Build extends BaseCommand {
  static override summary = 'Write a folder that holds svc with exactly these plugins'
  static override description =
    'Writes a folder that holds svc with exactly the plugins of the configuration, those that are installed included, and a Containerfile: `npm start` in it serves. It needs Node.js 24 and no network. Two builds of the same have equal bytes. What the environment says now is not in it.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./out',
    '<%= config.bin %> <%= command.id %> ./out --config ./staging.yaml --json',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder to write, new or empty', required: true, ignoreStdin: true }),
  }
  static override flags = {
    config: Flags.string({ char: 'c', summary: 'Configuration file', helpValue: '<file>' }),
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Build)
    const { buildFolder } = await import('./build/build.ts')
    return buildFolder({ folder: args.folder, ...flags })
  }
}
