import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { oclifFlags, optionsOf, settingFlagNames } from '@svc/cli/program'

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

export class Doctor extends BaseCommand {
  static override summary = 'Check what svc needs: home, configuration, store, providers, port'
  static override description =
    'Checks Node, the svc home, the configuration, the profiles, the store, the providers, authentication, the port, the certificate and the sandbox as `svc serve` with the same options would find them, and suggests a fix for each problem. Starts the configured plugins in this process, except those that listen; a server may run at the same time. Exits with 1 when a check fails, and with 0 when checks only warn.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml',
    '<%= config.bin %> <%= command.id %> --port 9000 --json',
  ]
  static override flags = { ...oclifFlags(settingFlagNames), json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(Doctor)
    const { doctor } = await import('./doctor/doctor.ts')
    return doctor(optionsOf(flags), flags.json)
  }
}
