// Not a unit test: starts servers and commands.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Evaluation, EvaluationReport } from '@svc/core/contracts'
import { expect } from 'chai'
import { createClient } from './support/client.ts'
import { type CommandOptions, runSvc } from './support/command.ts'
import { COMPILED, SVC } from './support/entry.ts'
import { newHome, type Service, startService } from './support/service.ts'
import { configureFew } from './support/tides.ts'

const PLUGINS = ['jobs', 'evaluations', 'models', 'tools-time']
const PROFILES = 'profiles: { default: { provider: local }, short: { provider: local, max_tokens: 2 } }\n'
const CASES = `cases:
  - name: fine
    message: one two three four five six
    checks: [{ contains: six }]
`
/** The reply steers a terminal. */
const HOSTILE = 'cases: [{ name: "a\\e[2J\\ab", message: "x\\e[2J\\e]0;owned\\ay <b>", checks: [{ exact: "never" }] }]\n'

interface Setting {
  home: string
  service: Service | undefined
}

async function setUp(withServer: boolean): Promise<Setting> {
  const home = await newHome()
  await writeFile(join(home, 'profiles.yaml'), PROFILES)
  await writeFile(join(home, 'cases.yaml'), CASES)
  await configureFew(home, {}, PLUGINS)
  const args = ['--config', join(home, 'svc.config.json')]
  return { home, service: withServer ? await startService({ home, args }) : undefined }
}

/** Starts a command that a test interrupts when the standard error has this text. */
function interrupted(args: readonly string[], { home }: CommandOptions, when: (err: string) => Promise<boolean> | boolean) {
  const env = { PATH: process.env.PATH, ...COMPILED, SVC_HOME: home }
  const child = spawn(process.execPath, [...SVC, ...args], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const out = text(child.stdout)
  const exited = once(child, 'exit') as Promise<[number | null]>
  let err = ''
  child.stderr.on('data', (data: Buffer) => (err += data.toString()))
  const ready = async () => {
    while (child.exitCode === null && !(await when(err))) await sleep(50)
    child.kill('SIGINT')
    const begun = performance.now()
    const [code] = await exited
    return { code, out: await out, err, ms: performance.now() - begun }
  }
  return ready()
}

for (const withServer of [true, false])
  describe(`svc eval ${withServer ? 'with a server' : 'without a server'}`, function () {
    this.timeout(120_000)
    let set: Setting
    const svc = (...args: string[]) => runSvc(args, { home: set.home, share: true })
    const report = async (...args: string[]) => {
      const { code, out, err } = await svc(...args, '--json')
      expect(code, err).to.be.oneOf([0, 1])
      return { code, report: JSON.parse(out) as EvaluationReport }
    }
    before(async () => {
      set = await setUp(withServer)
    })
    after(async () => {
      await set.service?.stop()
      await rm(set.home, { recursive: true, force: true })
    })

    it('exits with 0 if all cases pass', async () => {
      const { code, out } = await svc('eval', 'run', 'cases.yaml')
      expect(code).to.equal(0)
      expect(out).to.match(/^default +1 +0 +0 +100 %/m)
    })

    it('compares two profiles, exits with 1, and writes JUnit', async () => {
      const found = await report(
        'eval',
        'run',
        'cases.yaml',
        '--profile',
        'short',
        '--against',
        'default',
        '--repeat',
        '2',
        '--junit',
        'r.xml'
      )
      expect(found.code).to.equal(1)
      expect(found.report.better).to.deep.equal({
        cases: [
          { target: 'short', cases: 0 },
          { target: 'default', cases: 1 },
        ],
        ties: 0,
      })
      expect(found.report.targets.map(({ passed, samples }) => [passed, samples])).to.deep.equal([
        [0, 2],
        [2, 2],
      ])
      const xml = await readFile(join(set.home, 'r.xml'), 'utf8')
      expect(xml).to.include('<testsuite name="short" tests="2" failures="2" errors="0"')
    })

    it('has a failed provider as an error of the case', async () => {
      await writeFile(join(set.home, 'fails.yaml'), 'cases: [{ name: f, message: "/fail authentication" }]\n')
      const { code, out } = await svc('eval', 'run', 'fails.yaml')
      expect(code).to.equal(1)
      expect(out).to.match(/^error: f · default\n {2}MODEL_FAILED/m)
    })

    it('shows no reply that steers a terminal', async () => {
      await writeFile(join(set.home, 'hostile.yaml'), HOSTILE)
      const { code, out, err } = await svc('eval', 'run', 'hostile.yaml')
      expect(code, err).to.equal(1)
      expect(out).to.include('reply: You said: xy <b>')
      expect(out).not.to.match(/[^\P{Cc}\n]/u)
    })

    for (const [what, args, problem] of [
      ['an unknown profile', ['run', 'cases.yaml', '--profile', 'none'], /INVALID_VALUE.*\n?.*no profile "none"/],
      ['a file that does not exist', ['run', 'none.yaml'], /FILE_UNREADABLE/],
      ['a file that never ends', ['run', '/dev/zero'], /is longer than/],
      ['a repeat that is too high', ['run', 'cases.yaml', '--repeat', '21'], /repeat/],
      ['no file', ['run'], /file/],
      ['no time', ['replay'], /since/],
      ['a time that is none', ['replay', '--since', 'yesterday'], /--since is not a time/],
      ['a report that cannot be written', ['run', 'cases.yaml', '--junit', 'none/r.xml'], /FILE_UNWRITABLE/],
    ] as const)
      it(`exits with 2 for ${what}`, async () => {
        const { code, err } = await svc('eval', ...args)
        expect(code, err).to.equal(2)
        expect(err).to.match(problem)
      })

    it('exits with 2 for a file with problems, and shows all with their lines', async () => {
      await writeFile(join(set.home, 'bad.yaml'), 'cases:\n  - name: a\n    mesage: b\n    checks: [{ equals: x }]\n')
      const { code, err } = await svc('eval', 'run', 'bad.yaml')
      expect(code).to.equal(2)
      expect(err).to.include('line 3:5 cases[0].mesage').and.to.include('did you mean "message"?')
      expect(err).to.include('line 4:16 cases[0].checks[0].equals')
    })

    it('replays stored turns', async () => {
      expect((await svc('chat', 'one two three four five six')).code).to.equal(0)
      const same = await report('eval', 'replay', '--since', '1h')
      expect(same.code).to.equal(0)
      expect(same.report.targets.map(({ target, passed }) => [target, passed])).to.deep.equal([
        ['stored', 1],
        ['default', 1],
      ])
      const other = await report('eval', 'replay', '--since', '1h', '--profile', 'short')
      expect(other.code).to.equal(1)
      const none = await svc('eval', 'replay', '--since', '2999-01-01T00:00:00Z')
      expect([none.code, none.err]).to.satisfy(([code, err]: [number, string]) => code === 0 && err.includes('no turn to run'))
    })

    it('ends in time at Ctrl-C, with what is done so far', async () => {
      const slow = 'cases: [{ name: fast, message: hi }, { name: slow, message: "/delay 60000\\nlate" }]\n'
      await writeFile(join(set.home, 'slow.yaml'), slow)
      const isDone = async (err: string) => {
        if (set.service === undefined) return err.includes('runs 2 turns')
        const [, id] = /evaluation (\S+) runs on/.exec(err) ?? []
        if (id === undefined) return false
        const { body } = await createClient(set.service.url, { keepAlive: false }).get(`/api/v1/evaluations/${id}`)
        return (body as unknown as Evaluation).done === 1
      }
      const { code, out, err, ms } = await interrupted(['eval', 'run', 'slow.yaml', '--json'], { home: set.home }, isDone)
      expect(code, err).to.equal(130)
      expect(ms).to.be.below(20_000)
      const found = JSON.parse(out) as EvaluationReport
      expect(found).to.deep.include({ complete: false, total: 2 })
      expect(found.done).to.be.oneOf(withServer ? [1] : [0, 1])
    })
  })
