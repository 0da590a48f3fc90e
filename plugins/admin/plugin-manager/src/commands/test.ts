import { Args, BaseCommand, Flags } from '@svc/cli/command'

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
    const result = await testPlugin(asked, one => (flags.json ? undefined : this.log(caseText(one))))
    this.log(flags.json ? JSON.stringify({ ok: !hasFailed(result), ...result }, null, 2) : `\n${summaryText(result)}`)
    return hasFailed(result) ? 1 : 0
  }
}
