import { chown, lstat, mkdir, mkdtemp, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Attacked, describeIsolated, startAttacked } from '../support/attacker.ts'
import { until } from '../support/wait.ts'

const CODE = `import { definePlugin } from '@svc/core'
export default definePlugin({ setup() {} })
`
/** No process has this id: it is above the largest that the kernel allows. */
const DEAD = 4_194_305

describeIsolated('temporary folders of egress proxies', function () {
  this.timeout(60_000)
  let temporary: string
  let outside: string
  let attacked: Attacked
  before(async () => {
    temporary = await mkdtemp(join(tmpdir(), 'svc-swept-'))
    outside = await mkdtemp(join(tmpdir(), 'svc-kept-'))
    await writeFile(join(outside, 'precious'), 'precious')
    attacked = await startAttacked({ plugins: [{ name: 'svc-plugin-still', code: CODE }], env: { TMPDIR: temporary } })
  })
  after(async () => {
    await attacked?.[Symbol.asyncDispose]()
    for (const folder of [temporary, outside]) await rm(folder, { recursive: true, force: true })
  })
  const proxies = async () => (await readdir(temporary)).filter(name => name.startsWith('svc-egress-'))
  const isThere = (name: string) =>
    lstat(join(temporary, name)).then(
      () => true,
      () => false
    )

  it('go when the next worker starts, where their worker was killed; nothing else goes', async () => {
    const left = await proxies()
    expect(left).to.have.length(1)
    await attacked.service.kill()
    expect(await proxies()).to.deep.equal(left)
    const space = /\d+/.exec(await readlink('/proc/self/ns/pid'))![0]
    const dead = (suffix: string) => `svc-egress-${space}-${DEAD}-${suffix}`
    const kept = [
      `svc-egress-${space}-${process.pid}-aaaaaa`,
      `svc-egress-1-${DEAD}-aaaaaa`,
      `${dead('a')}-b`,
      `svc-other-${space}-${DEAD}-aaaaaa`,
    ]
    for (const name of kept) await mkdir(join(temporary, name))
    await mkdir(join(temporary, dead('aaaaaa')))
    // what lies in it leads out of it
    await symlink(outside, join(temporary, dead('aaaaaa'), 'link'))
    await symlink(outside, join(temporary, dead('bbbbbb')))
    await writeFile(join(temporary, dead('cccccc')), 'a file')
    kept.push(dead('bbbbbb'), dead('cccccc'))
    if (process.getuid?.() === 0) {
      await mkdir(join(temporary, dead('dddddd')))
      await chown(join(temporary, dead('dddddd')), 12_345, 12_345)
      kept.push(dead('dddddd'))
    }
    await attacked.again()
    await until(
      async () => (await isThere(left[0]!)) || (await isThere(dead('aaaaaa'))),
      isLeft => !isLeft
    )
    for (const name of kept) expect(await isThere(name), name).to.equal(true)
    expect(await readdir(outside)).to.deep.equal(['precious'])
  })
})
