// The tests of a plugin may not leave its folder: they take it from '@svc/testing', where it lives.
export { type Answerer, type FakeUpstream, openUpstream } from '@svc/testing'
