import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { expect } from 'chai'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')
const ROW = /^\| `([^`]+)` \| (\d[\w.-]*) \| ([\w.-]+) \| \d{4}-\d\d \| \d+ \| /gm

describe('the packages of the page of the console', () => {
  it('are each in the README, with version and licence', () => {
    const { dependencies } = JSON.parse(read('../page/package.json')) as { dependencies: Readonly<Record<string, string>> }
    const listed = [...read('../README.md').matchAll(ROW)].map(([, name, version]) => `${name} ${version}`)
    const own = Object.entries(dependencies).filter(([name]) => !name.startsWith('@svc/'))
    expect(listed.sort()).to.deep.equal(own.map(([name, version]) => `${name} ${version}`).sort())
    const paths = createRequire(new URL('../page/package.json', import.meta.url)).resolve.paths('x')!
    for (const [, name, , licence] of read('../README.md').matchAll(ROW)) {
      const found = paths.flatMap(folder => {
        try {
          return [JSON.parse(readFileSync(`${folder}/${name}/package.json`, 'utf8')) as { license: string }]
        } catch {
          return []
        }
      })
      expect(found[0]?.license, name).to.equal(licence)
    }
  })
})
