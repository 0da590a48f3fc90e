import { relative } from 'node:path'
import { Args, BaseCommand, Flags } from '@svc/cli/command'

const KINDS = ['provider', 'tool', 'node', 'auth', 'routes', 'command', 'store', 'vertical'] as const

export class PluginsNew extends BaseCommand {
  static override summary = 'Create a plugin package that passes its test kit'
  static override description =
    'Writes a small package with a manifest, types, a test and a README. The package passes its test kit unchanged. It is in TypeScript unless you pass --js. Exits with 1 and writes nothing when the name is not a valid package name or the folder is not empty.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --kind tool',
    '<%= config.bin %> <%= command.id %> @me/svc-plugin-acme --kind provider --js --dir acme',
  ]
  static override args = {
    name: Args.string({ description: 'Name of the package', required: true, ignoreStdin: true }),
  }
  static override flags = {
    kind: Flags.option({ options: KINDS, summary: 'What it adds', required: true })(),
    js: Flags.boolean({ summary: 'Write JavaScript, which needs no compiler' }),
    dir: Flags.string({ summary: 'Folder to write; default: the name, in the working folder', helpValue: '<folder>' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsNew)
    const { newPlugin } = await import('./author/new-plugin.ts')
    const { folder, files } = await newPlugin({ name: args.name, kind: flags.kind, js: flags.js, dir: flags.dir })
    const { callerFolder } = await import('@svc/cli/program')
    const at = relative(callerFolder(), folder) || '.'
    this.log(`${args.name} is in ${at}:\n${files.map(file => `  ${file}`).join('\n')}`)
    this.log(`\nnext:\n  cd ${at}\n  npm install\n  npm test\n  svc plugins dev`)
    return 0
  }
}
