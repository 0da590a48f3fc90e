import { Args, BaseCommand, Flags } from '@svc/cli/command'

// The commands that show plugins.

export class Plugins extends BaseCommand {
  static override summary = 'Show the plugins in start order, with times and contributions'
  static override description =
    'Asks the running server. If no server runs, or with --config, starts the configured plugins in this process, except those that listen, and stops them again. The first line names the source.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --port 9000',
    '<%= config.bin %> <%= command.id %> --config ./staging.yaml --json',
  ]
  static override flags = {
    port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
    config: Flags.string({
      char: 'c',
      summary: 'Use this configuration instead of a running server',
      helpValue: '<file>',
      exclusive: ['port'],
    }),
    json: Flags.boolean({ summary: 'Print one JSON object' }),
  }

  async run(): Promise<number> {
    const { flags } = await this.parse(Plugins)
    const { showPlugins } = await import('./report/list.ts')
    return showPlugins(flags)
  }
}

export class PluginsList extends BaseCommand {
  static override summary = 'List the plugins with their origin and state'
  static override description =
    'Lists installed, linked, configured and failed plugins: where each comes from, where its code runs, and its state (running, restarting, quarantined, failed, disabled). Plugins that come with svc are only counted, except with --all or --json. Names select plugins, including those of svc. Exits with 1 when a plugin failed, or when no plugin matches.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> weather "svc-plugin-t*"',
    '<%= config.bin %> <%= command.id %> --all',
    '<%= config.bin %> <%= command.id %> --json',
  ]
  static override args = {
    names: Args.string({ description: 'Part of a name, or a pattern with *; default: all', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...Plugins.flags, all: Flags.boolean({ summary: 'Include the plugins that come with svc' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsList)
    const { listPlugins } = await import('./report/list.ts')
    return listPlugins({ ...flags, names: args.names ?? [] })
  }
}

export class PluginsInfo extends BaseCommand {
  static override summary = 'Show an installed plugin: origin, permissions, health'
  static override description =
    'Shows the lock entry, the package, whether the files match the installed ones, and the state in the running server. Runs no code of the plugin.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { name: Args.string({ description: 'Name of an installed plugin', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsInfo)
    const { showInfo } = await import('./report/info.ts')
    return showInfo({ name: args.name, ...flags })
  }
}

export class PluginsDoctor extends BaseCommand {
  static override summary = 'Check the installed plugins: lock, files, sandbox, npm'
  static override description =
    'Checks the lock file, the files of each installed plugin, the versions of svc that they need, leftovers of earlier changes, the sandbox and npm. If these checks pass, starts a host once as `svc serve` would. Asks running servers for plugins that failed there. Suggests a fix for each problem. Exits with 1 when a check fails. `svc doctor` checks everything else.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { flags } = await this.parse(PluginsDoctor)
    const { diagnosePlugins } = await import('./report/doctor.ts')
    return diagnosePlugins(flags)
  }
}
