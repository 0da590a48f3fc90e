import { relative } from 'node:path'
import { Args, BaseCommand, Flags } from '@svc/cli/command'
import { oclifFlags, optionsOf, runServe, serveFlagNames } from '@svc/cli/program'
import { KINDS } from './author/several-kinds.ts'

// The commands for authors of plugins.

const isolationFlag = Flags.option({
  options: ['process', 'in-process'] as const,
  summary:
    'How the plugin runs; default: process, if this machine has the sandbox. in-process is faster and stops at breakpoints',
})

const names = serveFlagNames.filter(name => name !== 'watch')

export class PluginsDev extends BaseCommand {
  static override summary = 'Serve with the plugin in a folder, and reload when you save a file'
  static override description =
    'Runs `svc serve --watch` with the plugin in the folder, loaded from its source (the condition "development" of its "exports"). svc reloads after each saved file without dropping requests, and prints how long the reload took. Installed plugins are not loaded. The plugin runs in a process of its own, as when it is installed, if this machine has the sandbox.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --port 9000 --config ./svc.config.yaml',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = { ...oclifFlags(names), isolation: isolationFlag() }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsDev)
    const { folderOfPlugin } = await import('./author/plugin-folder.ts')
    const { chooseIsolation } = await import('./author/isolation-here.ts')
    const linked = folderOfPlugin(args.folder ?? '.')
    const { isolation, reason } = await chooseIsolation(linked, flags.isolation)
    if (reason !== undefined) this.logToStderr(`the plugin runs in the process of svc: ${reason}`)
    return runServe({ ...optionsOf(flags), watch: true, linked, linkedIsolation: isolation })
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
      summary: 'Kind of contribution; repeatable, or several kinds separated by commas',
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
    const { cloneToBuild } = await import('./author/development-specs.ts')
    const clone = cloneToBuild()
    const build = clone === undefined ? '' : `  (cd ${clone} && npm run build)\n`
    const isBuilt = files.includes('tsconfig.build.json')
    const steps = ['npm install', 'npm test', 'svc plugins dev', ...(isBuilt ? ['npm run build'] : []), 'svc plugins install .']
    this.log(
      `\nnext:\n${build}  cd ${at}\n${steps
        .map(step => `  ${step}\n`)
        .join('')
        .trimEnd()}`
    )
    return 0
  }
}

export class PluginsPublish extends BaseCommand {
  static override summary = 'Lint, test and publish a plugin'
  static override description =
    'Lints the package, runs its test kit in a process of its own, lists the files that npm would send, asks you, and runs `npm publish`. Exits with 1 and publishes nothing when a step fails.'
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
    'no-isolation': Flags.boolean({ summary: 'Run the test kit in the process of svc, and record that in package.json' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsPublish)
    const { publishPlugin } = await import('./author/publish.ts')
    const print = (line: string) => this.log(line)
    return publishPlugin({
      folder: args.folder ?? '.',
      dryRun: flags['dry-run'],
      yes: flags.yes,
      noIsolation: flags['no-isolation'],
      print,
    })
  }
}

export class PluginsTest extends BaseCommand {
  static override summary = 'Run the test kit of a plugin'
  static override description =
    'Checks the manifest against what the plugin does, calls its contributions with generated arguments, aborts calls, and looks for leftovers. Then runs the kit of its kind, with the samples in test/samples.ts or test/samples.js. Checks the types with the compiler of the package, if it has a tsconfig.json. Runs the source; warns when the build is older. Needs no test files and no API key. The plugin runs in a process of its own, confined to its manifest, as when it is installed, if this machine has the sandbox. Exits with 1 when a case fails.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --seed 7 --json',
    '<%= config.bin %> <%= command.id %> --isolation in-process',
  ]
  static override args = {
    folder: Args.string({ description: 'Folder of the plugin; default: the working folder', ignoreStdin: true }),
  }
  static override flags = {
    isolation: isolationFlag(),
    seed: Flags.integer({ summary: 'Seed of the generated arguments', default: 1, helpValue: '<int>' }),
    json: Flags.boolean({ summary: 'Print one JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsTest)
    const { caseText, hasFailed, summaryText, testPlugin } = await import('./author/test-plugin.ts')
    const { svcHome } = await import('@svc/core/config')
    const asked = { folder: args.folder ?? '.', seed: flags.seed, home: svcHome(), isolation: flags.isolation }
    const result = await testPlugin(asked, item => (flags.json ? undefined : this.log(caseText(item))))
    this.log(flags.json ? JSON.stringify({ ok: !hasFailed(result), ...result }, null, 2) : `\n${summaryText(result)}`)
    return hasFailed(result) ? 1 : 0
  }
}
