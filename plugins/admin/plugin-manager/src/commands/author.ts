import { relative } from 'node:path'
import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { oclifFlags, optionsOf, runServe, serveFlagNames } from '@svc/cli/program'

// The commands for authors of plugins.

const names = serveFlagNames.filter(name => name !== 'watch')

export class PluginsDev extends BaseCommand {
  static override summary = 'Serve with the plugin in a folder, and reload when you save a file'
  static override description =
    'Runs `svc serve --watch` with the plugin in the folder, loaded from its source (the condition "development" of its "exports"). svc reloads after each saved file without dropping requests, and prints how long the reload took. Installed plugins are not loaded.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --port 9000 --config ./svc.config.yaml',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = oclifFlags(names)

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsDev)
    const { folderOfPlugin } = await import('./author/plugin-folder.ts')
    const linked = folderOfPlugin(args.folder ?? '.')
    return runServe({ ...optionsOf(flags), watch: true, linked })
  }
}

export class PluginsLint extends BaseCommand {
  static override summary = 'Check a plugin for packaging problems'
  static override description =
    'Checks the manifest, the files, the exports, names that are already taken, the range of @svc/core and install scripts, and runs no code of the plugin. Warns about variables, hosts and files in the source that the manifest does not declare. Exits with 1 when there is an error.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> ./weather --json']
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = { json: Flags.boolean({ summary: 'Print one JSON object' }) }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsLint)
    const { findingsText, hasErrors } = await import('./author/plugin-folder.ts')
    const { lintPlugin } = await import('./author/lint.ts')
    const findings = await lintPlugin(args.folder ?? '.')
    this.log(flags.json ? JSON.stringify({ ok: !hasErrors(findings), findings }, null, 2) : findingsText(findings))
    return hasErrors(findings) ? 1 : 0
  }
}

const KINDS = ['provider', 'tool', 'node', 'auth', 'routes', 'service', 'hook', 'check', 'command', 'store', 'vertical'] as const

export class PluginsNew extends BaseCommand {
  static override summary = 'Create a plugin package that passes its test kit'
  static override description =
    'Writes a small package with a manifest, types, a test and a README. The package passes its test kit unchanged. `provider`, `store` and `vertical` cannot be combined with other kinds. It is in TypeScript unless you pass --js. Exits with 1 and writes nothing when the name is not a valid package name or the folder is not empty.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --kind tool',
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --kind tool,routes,check',
    '<%= config.bin %> <%= command.id %> @me/svc-plugin-acme --kind provider --js --dir acme',
  ]
  static override args = {
    name: Args.string({ description: 'Name of the package', required: true, ignoreStdin: true }),
  }
  static override flags = {
    kind: Flags.option({
      options: KINDS,
      summary: 'What it adds; several kinds with commas or several times',
      required: true,
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ',',
    })(),
    js: Flags.boolean({ summary: 'Write JavaScript, which needs no compiler' }),
    dir: Flags.string({ summary: 'Folder to write; default: the name, in the working folder', helpValue: '<folder>' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsNew)
    const { newPlugin } = await import('./author/new-plugin.ts')
    const { folder, files } = await newPlugin({ name: args.name, kinds: flags.kind, js: flags.js, dir: flags.dir })
    const { callerFolder } = await import('@svc/cli/program')
    const at = relative(callerFolder(), folder) || '.'
    this.log(`${args.name} is in ${at}:\n${files.map(file => `  ${file}`).join('\n')}`)
    this.log(`\nnext:\n  cd ${at}\n  npm install\n  npm test\n  svc plugins dev`)
    return 0
  }
}

export class PluginsPublish extends BaseCommand {
  static override summary = 'Lint, test and publish a plugin'
  static override description =
    'Lints the package, runs its test kit, lists the files that npm would send, asks you, and runs `npm publish`. Exits with 1 and publishes nothing when a step fails.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> --dry-run',
    '<%= config.bin %> <%= command.id %> ./weather --yes',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = {
    'dry-run': Flags.boolean({ summary: 'Show the files without publishing' }),
    yes: Flags.boolean({ summary: 'Publish without a question' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsPublish)
    const { publishPlugin } = await import('./author/publish.ts')
    const print = (line: string) => this.log(line)
    return publishPlugin({ folder: args.folder ?? '.', dryRun: flags['dry-run'], yes: flags.yes, print })
  }
}

export class PluginsTest extends BaseCommand {
  static override summary = 'Run the test kit of a plugin'
  static override description =
    'Checks the manifest against what the plugin does, calls its contributions with generated arguments, aborts calls, and looks for leftovers. Then runs the kit of its kind, with the samples in test/samples.ts or test/samples.js. Needs no test files and no API key. Exits with 1 when a case fails.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --seed 7 --json',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = {
    seed: Flags.integer({ summary: 'Seed of the generated arguments', default: 1, helpValue: '<int>' }),
    json: Flags.boolean({ summary: 'Print one JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsTest)
    const { caseText, hasFailed, summaryText, testPlugin } = await import('./author/test-plugin.ts')
    const { svcHome } = await import('@svc/core/config')
    const asked = { folder: args.folder ?? '.', seed: flags.seed, home: svcHome() }
    const result = await testPlugin(asked, item => (flags.json ? undefined : this.log(caseText(item))))
    this.log(flags.json ? JSON.stringify({ ok: !hasFailed(result), ...result }, null, 2) : `\n${summaryText(result)}`)
    return hasFailed(result) ? 1 : 0
  }
}
