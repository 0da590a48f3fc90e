import { setTimeout as sleep } from 'node:timers/promises'
describe('zz', () => { it('leaves', () => void sleep(20_000)) })
