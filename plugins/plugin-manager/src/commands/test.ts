import { Args, BaseCommand, Flags } from '@svc/cli/command'

export class PluginsTest extends BaseCommand {
  static override summary = 'Run the kit of a plugin, without a test being written'
  static override description =
    'Runs the kit without a test being written: the manifest against what the plugin does, made-up calls of what it adds, abort, leftovers; then the kit of its kind, with the samples of test/samples.ts (or .js) where there are some. Needs no key. Ends with 1 when a case fails.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> ./weather --seed 7 --json',
  ]
  static override args = { folder: Args.string({ description: 'Folder of the plugin; default: this one', ignoreStdin: true }) }
  static override flags = {
    seed: Flags.integer({ summary: 'What is made up follows from it', default: 1, helpValue: '<int>' }),
    json: Flags.boolean({ summary: 'One JSON object' }),
  }

  async run(): Promise<number> {
    const { args, flags } = await this.parse(PluginsTest)
    const { caseText, hasFailed, summaryText, testPlugin } = await import('./author/test-plugin.ts')
    const { svcHome } = await import('@svc/core/config')
    const asked = { folder: args.folder ?? '.', seed: flags.seed, home: svcHome() }
    const result = await testPlugin(asked, one => (flags.json ? undefined : this.log(caseText(one))))
    this.log(flags.json ? JSON.stringify({ ok: !hasFailed(result), ...result }, null, 2) : `\n${summaryText(result)}`)
    return hasFailed(result) ? 1 : 0
  }
}
