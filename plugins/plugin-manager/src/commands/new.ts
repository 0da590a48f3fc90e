import { relative } from 'node:path'
import { Args, BaseCommand, Flags } from '@svc/cli/command'

const KINDS = ['provider', 'tool', 'node', 'auth', 'routes', 'command', 'store', 'vertical'] as const

export class PluginsNew extends BaseCommand {
  static override summary = 'Make a plugin: a small package that passes its kit'
  static override description =
    'Writes a small package with manifest, types, a test and a README; it passes its kit at once. In TypeScript unless told otherwise. Ends with 1 when the name cannot be that of a package or the folder is not empty; then nothing was written.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> svc-plugin-weather --kind tool',
    '<%= config.bin %> <%= command.id %> @me/svc-plugin-acme --kind provider --js --dir acme',
  ]
  static override args = {
    name: Args.string({ description: 'Name of the package', required: true, ignoreStdin: true }),
  }
  static override flags = {
    kind: Flags.option({ options: KINDS, summary: 'What it adds', required: true })(),
    js: Flags.boolean({ summary: 'In JavaScript: needs no compiler' }),
    dir: Flags.string({ summary: 'Folder; else one of its name here', helpValue: '<folder>' }),
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
