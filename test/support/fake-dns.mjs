// Preloaded with --import: names that stand in the file SVC_TEST_DNS, as {"name": ["address"]}, lead where that says at the moment of asking.
import { readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { isIP } from 'node:net'
import dns from 'node:dns'

const { lookup } = dns.promises
dns.promises.lookup = async (name, options) => {
  const found = JSON.parse(readFileSync(process.env.SVC_TEST_DNS, 'utf8'))[name]
  if (found === undefined) return lookup(name, options)
  const all = found.map(address => ({ address, family: isIP(address) }))
  return options?.all ? all : all[0]
}
syncBuiltinESMExports()
