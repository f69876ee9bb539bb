// Checks a folder with golang.org/x/mod/sumdb, which Go's checksum database is checked with: the note and its
// signature, the tiles against its root, each leaf, and the proofs. It ends with 0 where all of them hold.
package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(folder string) error {
	vkey, err := os.ReadFile(filepath.Join(folder, "vkey"))
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(string(vkey))
	if err != nil {
		return err
	}
	signed, err := os.ReadFile(filepath.Join(folder, "checkpoint"))
	if err != nil {
		return err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return err
	}
	// Its own parser wants the origin of Go's checksum database.
	_, sizeAndRoot, _ := strings.Cut(opened.Text, "\n")
	tree, err := tlog.ParseTree([]byte("go.sum database tree\n" + sizeAndRoot))
	if err != nil {
		return err
	}
	read := tlog.TileHashReader(tree, tiles{folder})
	if root, err := tlog.TreeHash(tree.N, read); err != nil || root != tree.Hash {
		return fmt.Errorf("the tiles have another root (%v)", err)
	}
	leaves, err := lines(filepath.Join(folder, "leaves"))
	if err != nil {
		return err
	}
	if int64(len(leaves)) != tree.N {
		return fmt.Errorf("%d leaves, not %d", len(leaves), tree.N)
	}
	for index, line := range leaves {
		leaf, err := base64.StdEncoding.DecodeString(line[0])
		if err != nil {
			return err
		}
		proof, err := hashes(line[1:])
		if err != nil {
			return err
		}
		hash := tlog.RecordHash(leaf)
		if err := tlog.CheckRecord(proof, tree.N, tree.Hash, int64(index), hash); err != nil {
			return fmt.Errorf("leaf %d: %v", index, err)
		}
		tiled, err := read.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(index))})
		if err != nil || tiled[0] != hash {
			return fmt.Errorf("leaf %d is not in its tile (%v)", index, err)
		}
	}
	growths, err := lines(filepath.Join(folder, "growths"))
	if err != nil {
		return err
	}
	for _, line := range growths {
		size, err := strconv.ParseInt(line[0], 10, 64)
		if err != nil {
			return err
		}
		proof, err := hashes(line[1:])
		if err != nil {
			return err
		}
		if err := tlog.CheckTree(proof[1:], tree.N, tree.Hash, size, proof[0]); err != nil {
			return fmt.Errorf("size %d: %v", size, err)
		}
	}
	fmt.Printf("%d leaves, %d growths\n", len(leaves), len(growths))
	return nil
}

func hashes(texts []string) ([]tlog.Hash, error) {
	var all []tlog.Hash
	for _, text := range texts {
		hash, err := tlog.ParseHash(text)
		if err != nil {
			return nil, err
		}
		all = append(all, hash)
	}
	return all, nil
}

func lines(file string) ([][]string, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	var all [][]string
	for scanner := bufio.NewScanner(opened); scanner.Scan(); {
		all = append(all, strings.Fields(scanner.Text()))
	}
	return all, nil
}

type tiles struct{ folder string }

func (tiles) Height() int                         { return 8 }
func (tiles) SaveTiles(_ []tlog.Tile, _ [][]byte) {}

func (from tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range wanted {
		// Its paths name the height of tiles, which is always 8 in c2sp.org/tlog-tiles.
		data, err := os.ReadFile(filepath.Join(from.folder, strings.Replace(tile.Path(), "tile/8/", "tile/", 1)))
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}
