import { Args, BaseCommand, Flags } from '@svc/cli/command'

// The commands that change the installed plugins. Each imports its work when it runs, so help loads nothing else.

/** Flags of the commands that add or replace plugins. */
const changeFlags = {
  yes: Flags.boolean({ char: 'y', summary: 'Accept all permissions without a question' }),
  'dry-run': Flags.boolean({ summary: 'Show the changes without making them' }),
  trust: Flags.boolean({ summary: 'Allow code that runs in the process of svc without isolation' }),
  isolation: Flags.option({
    summary: 'Where the code runs; default: process, or what the plugin supports',
    options: ['process', 'in-process', 'quickjs'] as const,
  })(),
}

const offlineFlag = { offline: Flags.boolean({ summary: 'Use only the cache of npm' }) }

const placeFlags = {
  config: Flags.string({
    char: 'c',
    summary: 'Configuration for the values of permissions, and for the trial start when no server runs',
    helpValue: '<file>',
  }),
  json: Flags.boolean({ summary: 'Print one JSON object' }),
}

/** Flags of the commands that add nothing and ask no question. Scripts may pass --yes to each command. */
const unaskedFlags = {
  yes: Flags.boolean({ char: 'y', summary: 'Has no effect: this command asks no question' }),
  ...placeFlags,
}

const namesArg = Args.string({
  description: 'Names of installed plugins',
  required: true,
  multiple: true,
  ignoreStdin: true,
})

export class PluginsInstall extends BaseCommand {
  static override summary = 'Install plugins from a package, folder, tarball or bundle'
  static override description =
    'Installs packages from the registry, folders, tarballs, or one bundle of `svc plugins pack`, which replaces everything that is installed. Shows the permissions of each plugin and asks you before any of its code runs. Install scripts run only with --allow-scripts. A running server reloads without dropping requests. If the reload fails, svc restores the former plugins and reports the reason. Exits with 0 when the change is in effect, with 1 when it is not, and with 130 when you interrupt it; then nothing has changed.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather@^1.2 --yes',
    '<%= config.bin %> <%= command.id %> ./weather --dry-run',
    '<%= config.bin %> <%= command.id %> ./plugins.tgz --offline',
  ]
  static override args = {
    what: Args.string({
      description: 'Name, name@range, folder, tarball or bundle',
      required: true,
      multiple: true,
      ignoreStdin: true,
    }),
  }
  static override flags = {
    ...changeFlags,
    ...offlineFlag,
    'allow-scripts': Flags.boolean({ summary: 'Run the install scripts of these plugins, without isolation' }),
    ...placeFlags,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsInstall)
    const { installPlugins } = await import('./change/install.ts')
    const { 'dry-run': dryRun, 'allow-scripts': scripts, ...rest } = flags
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(installPlugins({ specs: args.what, dryRun, scripts, ...rest }))
  }
}

export class PluginsAccept extends BaseCommand {
  static override summary = 'Accept changed values of permissions'
  static override description =
    'A permission can refer to a setting, for example to the address of a database. svc asks you to accept its value at the installation. After the value has changed, svc does not start or reload with it until you accept it here. The command shows only values that are not accepted yet.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --yes',
  ]
  static override args = {
    names: Args.string({ description: 'Names of installed plugins; default: all', multiple: true, ignoreStdin: true }),
  }
  static override flags = {
    yes: Flags.boolean({ char: 'y', summary: 'Accept all values without a question' }),
    ...placeFlags,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsAccept)
    const { acceptValues } = await import('./change/manage.ts')
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(acceptValues({ names: args.names ?? [], ...flags }))
  }
}

export class PluginsLink extends BaseCommand {
  static override summary = 'Link a local plugin for development'
  static override description =
    'Loads the plugin from its folder, without verification of its files. A saved change takes effect at the next reload, or immediately with `svc serve --watch`. The plugin uses the dependencies installed in its folder.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> ./weather',
    '<%= config.bin %> <%= command.id %> ~/weather --yes --json',
  ]
  static override args = { folder: Args.string({ description: 'Folder of a plugin', required: true, ignoreStdin: true }) }
  static override flags = { ...changeFlags, ...placeFlags }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsLink)
    const { linkPlugin } = await import('./change/install.ts')
    const { 'dry-run': dryRun, ...rest } = flags
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(linkPlugin({ folder: args.folder, dryRun, ...rest }))
  }
}

export class PluginsPack extends BaseCommand {
  static override summary = 'Write all installed plugins into one file'
  static override description =
    'Writes the installed plugins into one file. `svc plugins install <file>` restores them on another machine without a network. Two bundles of the same plugins are identical byte for byte.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> plugins.tgz',
    '<%= config.bin %> <%= command.id %> plugins.tgz --json',
  ]
  static override args = { file: Args.string({ description: 'File to write', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsPack)
    const { packPlugins } = await import('./change/manage.ts')
    return packPlugins({ file: args.file, ...flags })
  }
}

export class PluginsSearch extends BaseCommand {
  static override summary = 'Search the registry for plugins'
  static override description =
    'Searches the registry of npm for packages with the keyword svc-plugin. Any package can use this keyword. `svc plugins install` shows the permissions of a plugin before it installs anything.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> weather',
    '<%= config.bin %> <%= command.id %> "postgres store" --json',
  ]
  static override args = { text: Args.string({ description: 'Words to search for', required: true, ignoreStdin: true }) }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsSearch)
    const { searchRegistry } = await import('./change/manage.ts')
    return searchRegistry({ text: args.text, ...flags })
  }
}

export class PluginsRollback extends BaseCommand {
  static override summary = 'Go back to the former version of plugins'
  static override description =
    'Installs the version that the installed one has replaced on this machine, from its kept tarball, whose hash must be the former one. Shows its permissions and asks you, as an installation does. In a cluster, all nodes take over the change. Run the command again to return.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --dry-run',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --yes --json',
  ]
  static override args = { names: namesArg }
  static override flags = {
    yes: changeFlags.yes,
    'dry-run': changeFlags['dry-run'],
    ...offlineFlag,
    ...placeFlags,
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsRollback)
    const { rollBackPlugins } = await import('./change/install.ts')
    const { 'dry-run': dryRun, ...rest } = flags
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(rollBackPlugins({ names: args.names, dryRun, ...rest }))
  }
}

/** Base class of `enable` and `disable`. */
abstract class PluginsSwitch extends BaseCommand {
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = unaskedFlags

  protected abstract readonly enabled: boolean

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsSwitch)
    const { switchPlugins } = await import('./change/manage.ts')
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(switchPlugins({ names: args.names, enabled: this.enabled, ...flags }))
  }
}

export class PluginsDisable extends PluginsSwitch {
  static override summary = 'Disable installed plugins'
  static override description =
    'Keeps the files and the accepted permissions. To disable a configured plugin, set enabled: false in the configuration: plugins: [{ use: …, enabled: false }].'
  protected readonly enabled = false
}

export class PluginsEnable extends PluginsSwitch {
  static override summary = 'Enable installed plugins again'
  static override description = 'Enables plugins that `svc plugins disable` disabled, after a verification of their files.'
  protected readonly enabled = true
}

export class PluginsUninstall extends BaseCommand {
  static override summary = 'Uninstall plugins'
  static override description =
    'A running server reloads without the plugins and drops no request. If the reload fails, for example because another plugin needs one of them, nothing changes. svc deletes the files when no worker uses them. A linked folder stays as it is.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --json',
  ]
  static override args = { names: namesArg }
  static override flags = unaskedFlags

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsUninstall)
    const { uninstallPlugins } = await import('./change/manage.ts')
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(uninstallPlugins({ names: args.names, ...flags }))
  }
}

export class PluginsUpdate extends BaseCommand {
  static override summary = 'Update installed plugins'
  static override description =
    'Installs the newest version in the range of each plugin, or its folder or tarball in its present state. Linked plugins stay as they are. Shows new permissions and asks you again. To install an older version, run `svc plugins install name@version`.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --dry-run',
    '<%= config.bin %> <%= command.id %> --yes --json',
  ]
  static override args = {
    names: Args.string({ description: 'Names of installed plugins; default: all', multiple: true, ignoreStdin: true }),
  }
  static override flags = { ...changeFlags, ...offlineFlag, ...placeFlags }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsUpdate)
    const { updatePlugins } = await import('./change/install.ts')
    const { 'dry-run': dryRun, ...rest } = flags
    const { withCompletion } = await import('@svc/cli/program')
    return withCompletion(updatePlugins({ names: args.names ?? [], dryRun, ...rest }))
  }
}
