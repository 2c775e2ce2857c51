// Command load runs etcd, and puts loads on it and on ZooKeeper: those of tests/bench/peers/objects_load.py.
//
//	load serve OPTION...                            etcd itself
//	load etcd|zookeeper PORT KEYS CASE[:CLIENTS]... one line of JSON for each case
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

const (
	connections = 16 // clients share them: a connection of its own for each makes both servers slower
	filling     = 100
	valueSize   = 100
	watched     = 300
)

// A store is one connection to a server.
type store interface {
	fill(keys []string, value string) error
	put(key, value string) error
	// transact sets two keys if they are as they were read; false: they are not.
	transact(a, b, value string) (bool, error)
	read(key string, local bool) error
	// watch returns what tells of each change of a key.
	watch(key string) (<-chan struct{}, error)
}

type result struct {
	Case      string  `json:"case"`
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50_ms"`
	P99       float64 `json:"p99_ms"`
}

func main() {
	if os.Args[1] == "serve" {
		etcdmain.Main(append([]string{"etcd"}, os.Args[2:]...))
		return
	}
	port, keys := os.Args[2], number(os.Args[3])
	stores := make([]store, connections)
	for i := range stores {
		if os.Args[1] == "etcd" {
			stores[i] = newEtcd(port)
		} else {
			stores[i] = newZooKeeper(port)
		}
	}
	for _, word := range os.Args[4:] {
		name, rest, _ := strings.Cut(word, ":")
		found := result{}
		switch name {
		case "fill":
			check(fill(stores, keys))
		case "first":
			check(stores[0].read(key(keys-1), false))
		case "watch":
			found = watch(stores, key(0))
		default:
			clients, seconds, _ := strings.Cut(rest, ":")
			found = run(stores, name, keys, number(clients), time.Duration(number(seconds))*time.Second)
		}
		found.Case = strings.TrimSuffix(word, rest) + strings.Split(rest, ":")[0]
		check(json.NewEncoder(os.Stdout).Encode(found))
	}
}

func run(stores []store, name string, keys, clients int, seconds time.Duration) result {
	began := time.Now()
	times := make([][]time.Duration, clients)
	var group sync.WaitGroup
	for i := range clients {
		group.Add(1)
		go func() {
			defer group.Done()
			store, value := stores[i%len(stores)], newValue()
			for before := time.Now(); before.Sub(began) < seconds; {
				a, b := key(rand.IntN(keys)), key(rand.IntN(keys))
				var err error
				switch name {
				case "put":
					err = store.put(a, value)
				case "transact":
					for done := false; !done && err == nil; {
						done, err = store.transact(a, b, value)
					}
				case "read", "local":
					err = store.read(a, name == "local")
				default:
					log.Fatalf("no case is called %q", name)
				}
				check(err)
				after := time.Now()
				times[i] = append(times[i], after.Sub(before))
				before = after
			}
		}()
	}
	group.Wait()
	return summary(slices.Concat(times...), time.Since(began))
}

func watch(stores []store, key string) result {
	seen, err := stores[1].watch(key)
	check(err)
	times := make([]time.Duration, watched)
	began := time.Now()
	for i := range times {
		before := time.Now()
		check(stores[0].put(key, newValue()))
		<-seen
		times[i] = time.Since(before)
		time.Sleep(5 * time.Millisecond)
	}
	return summary(times, time.Since(began))
}

func fill(stores []store, keys int) error {
	var group sync.WaitGroup
	for i, store := range stores {
		group.Add(1)
		go func() {
			defer group.Done()
			for first := i * filling; first < keys; first += len(stores) * filling {
				names := []string{}
				for each := first; each < min(first+filling, keys); each++ {
					names = append(names, key(each))
				}
				check(store.fill(names, newValue()))
			}
		}()
	}
	group.Wait()
	return nil
}

func summary(times []time.Duration, took time.Duration) result {
	slices.Sort(times)
	ms := func(part float64) float64 {
		return times[int(part*float64(len(times)-1))].Seconds() * 1000
	}
	return result{PerSecond: float64(len(times)) / took.Seconds(), P50: ms(0.5), P99: ms(0.99)}
}

type etcd struct{ client *clientv3.Client }

func newEtcd(port string) store {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:" + port}})
	check(err)
	return &etcd{client}
}

func (e *etcd) fill(keys []string, value string) error {
	puts := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		puts[i] = clientv3.OpPut(key, value)
	}
	_, err := e.client.Txn(context.Background()).Then(puts...).Commit()
	return err
}

func (e *etcd) put(key, value string) error {
	_, err := e.client.Put(context.Background(), key, value)
	return err
}

// What is read may be old: it is compared.
func (e *etcd) transact(a, b, value string) (bool, error) {
	local := clientv3.WithSerializable()
	found, err := e.client.Txn(context.Background()).
		Then(clientv3.OpGet(a, local), clientv3.OpGet(b, local)).Commit()
	if err != nil {
		return false, err
	}
	same := make([]clientv3.Cmp, 2)
	for i, key := range []string{a, b} {
		version := found.Responses[i].GetResponseRange().Kvs[0].ModRevision
		same[i] = clientv3.Compare(clientv3.ModRevision(key), "=", version)
	}
	puts := []clientv3.Op{clientv3.OpPut(a, value)}
	if a != b {
		puts = append(puts, clientv3.OpPut(b, value))
	}
	done, err := e.client.Txn(context.Background()).If(same...).Then(puts...).Commit()
	return err == nil && done.Succeeded, err
}

func (e *etcd) read(key string, local bool) error {
	options := []clientv3.OpOption{}
	if local {
		options = append(options, clientv3.WithSerializable())
	}
	found, err := e.client.Get(context.Background(), key, options...)
	if err == nil && len(found.Kvs) != 1 {
		err = fmt.Errorf("%s is not there", key)
	}
	return err
}

func (e *etcd) watch(key string) (<-chan struct{}, error) {
	seen := make(chan struct{})
	ready := make(chan struct{})
	go func() {
		for answer := range e.client.Watch(context.Background(), key, clientv3.WithCreatedNotify()) {
			if answer.Created {
				close(ready)
			}
			for range answer.Events {
				seen <- struct{}{}
			}
		}
	}()
	<-ready
	return seen, nil
}

type zookeeper struct{ client *zk.Conn }

func newZooKeeper(port string) store {
	client, events, err := zk.Connect(
		[]string{"127.0.0.1:" + port}, time.Minute, zk.WithLogger(log.New(os.Stderr, "", 0)), zk.WithLogInfo(false))
	check(err)
	for (<-events).State != zk.StateHasSession {
	}
	return &zookeeper{client}
}

func (z *zookeeper) fill(keys []string, value string) error {
	creates := make([]any, len(keys))
	for i, key := range keys {
		creates[i] = &zk.CreateRequest{Path: "/" + key, Data: []byte(value), Acl: zk.WorldACL(zk.PermAll)}
	}
	_, err := z.client.Multi(creates...)
	return err
}

func (z *zookeeper) put(key, value string) error {
	_, err := z.client.Set("/"+key, []byte(value), -1)
	return err
}

func (z *zookeeper) transact(a, b, value string) (bool, error) {
	sets := []any{}
	for _, key := range slices.Compact([]string{a, b}) {
		_, stat, err := z.client.Get("/" + key)
		if err != nil {
			return false, err
		}
		sets = append(sets, &zk.SetDataRequest{Path: "/" + key, Data: []byte(value), Version: stat.Version})
	}
	_, err := z.client.Multi(sets...)
	if err == zk.ErrBadVersion {
		return false, nil
	}
	return err == nil, err
}

func (z *zookeeper) read(key string, local bool) error {
	if !local {
		if _, err := z.client.Sync("/" + key); err != nil {
			return err
		}
	}
	_, _, err := z.client.Get("/" + key)
	return err
}

// Each watch tells of one change: it is set again before the change is told of.
func (z *zookeeper) watch(key string) (<-chan struct{}, error) {
	seen := make(chan struct{})
	_, _, events, err := z.client.GetW("/" + key)
	go func() {
		for err == nil {
			<-events
			_, _, events, err = z.client.GetW("/" + key)
			seen <- struct{}{}
		}
		log.Fatal(err)
	}()
	return seen, err
}

func key(i int) string { return fmt.Sprintf("k%015d", i) }

func newValue() string {
	bytes := make([]byte, valueSize)
	for i := range bytes {
		bytes[i] = 'a' + byte(rand.IntN(26))
	}
	return string(bytes)
}

func number(word string) int {
	number, err := strconv.Atoi(word)
	check(err)
	return number
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
